"""What `bragg ranks` says of a job."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bragg.analyze.ranks.aligned import Group, groups_of, usual_ones
from bragg.analyze.ranks.arrivals import waits_for_last
from bragg.analyze.ranks.bandwidth import Transfers, transfers_of
from bragg.analyze.ranks.causes import LateCause, Reason, cause_of, peers_of
from bragg.analyze.ranks.clocks import Alignment, alignments, clock_notes
from bragg.analyze.ranks.critical_path import CriticalPath, critical_path
from bragg.analyze.ranks.imbalance import Imbalance, PathValues, imbalances, path_values
from bragg.analyze.ranks.lateness import Lateness, lateness_of
from bragg.analyze.ranks.links import SlowLink, slow_links
from bragg.analyze.ranks.path_sums import PathSums
from bragg.analyze.ranks.step_lanes import StepLanes, step_lanes
from bragg.analyze.ranks.step_work import work_of_steps
from bragg.analyze.ranks.stragglers import Straggler, stragglers_of
from bragg.model.ranks.job import named_ranks
from bragg.model.ranks.summary import RankSummary

_N_IMBALANCES = 3
_N_TRANSFERS = 8
_N_STEPS, _N_LANES, _N_BARS = 4, 32, 64  # of each step what a page shows without scrolling
# Ranks that end together have this share of the collectives of the longest at least.
_ENDED = 0.95
_N_ENDED = 3


@dataclass(frozen=True)
class Exposed:
    """Communication beside which nothing else runs, of the average rank.

    Attributes:
        share: Of the time of the steps.
        waiting_share: The part of it in which ranks waited for the last one.
    """

    share: float
    waiting_share: float


@dataclass(frozen=True, eq=False)
class RanksAnswer:
    """A job's ranks compared.

    Attributes:
        ranks: The ranks, by number.
        stragglers: Those that others wait for, with the cause, the worst first.
        link: A slow link; None: none is seen.
        lateness: What each rank cost in each step; None: the ranks have no collectives in common.
        exposed: None: not known.
        imbalances: Call paths that take longer on one rank.
        clocks: How to put the times of each rank on the clock of the first one; None: no data says how.
        path: The chain of work and transfers that sets the length of the job; None: only sums are known.
        transfers: The collectives that take longest, with their bandwidth.
        lanes: The steps in which one rank costs the others most, the most first, a lane for each of some ranks.
        is_whole: Whether collectives are known one by one.
        n_collectives: How many were compared.
        notes: What could not be used, a line each.
    """

    ranks: list[RankSummary]
    stragglers: list[tuple[Straggler, LateCause]]
    link: SlowLink | None
    lateness: Lateness | None
    exposed: Exposed | None
    imbalances: list[Imbalance]
    clocks: list[Alignment | None]
    path: CriticalPath | None
    transfers: list[Transfers]
    lanes: list[StepLanes]
    is_whole: bool
    n_collectives: int
    notes: list[str]


def compare_ranks(
    summaries: Sequence[RankSummary], problems: Sequence[str] = (), sums: PathSums | None = None
) -> RanksAnswer:
    """The ranks of a job compared.

    Args:
        summaries: One for each rank.
        problems: What is known to be missing.
        sums: Of their call paths; None: not added up yet.
    """
    ranks, left_out = _comparable(sorted(summaries, key=lambda rank: rank.rank))
    is_whole = all(rank.is_whole for rank in ranks)
    is_on_cpus = is_whole and all(rank.is_on_cpus for rank in ranks)
    if is_on_cpus:
        ranks = waits_for_last(ranks)
    if sums is None or len(ranks) < len(summaries):
        sums = PathSums.joined([PathSums.of(rank.rank, rank.paths()) for rank in ranks])
    groups = groups_of(ranks)
    clocks = alignments(ranks, groups if is_whole else [])
    notes = [*problems, *left_out, *clock_notes(ranks, clocks), *_cut_short(ranks, groups)]
    if not groups:
        uneven = imbalances(path_values(ranks, usual_ones(range(len(ranks)))), sums, _N_IMBALANCES)
        return RanksAnswer(ranks, [], None, None, None, uneven, clocks, None, [], [], is_whole, 0, notes)
    found = lateness_of(ranks, groups, is_whole=is_whole)
    host_waits_ns = np.array([sums.host_waits_ns[rank.rank] for rank in ranks], np.float64)
    late = stragglers_of(found, groups, host_waits_ns, is_whole=is_whole)
    causes, values = _causes_of(late, groups, ranks, is_whole=is_whole)
    is_timed = is_whole and not is_on_cpus  # Of those between CPUs arrivals are known, and no transfers.
    link = slow_links(groups) if is_timed else None
    if link is not None:  # Who waits for a transfer in one group comes late to the next one.
        causes = [
            (each, why) for each, why in causes if why.reason is not Reason.HOST or each.index not in link.members
        ]
    return RanksAnswer(
        ranks,
        causes,
        link,
        found,
        _exposed(found, groups),
        imbalances(values, sums, _N_IMBALANCES),
        clocks,
        critical_path(len(ranks), groups) if is_timed else None,
        transfers_of(groups, ranks, _N_TRANSFERS) if is_timed else [],
        step_lanes(found, groups, _N_STEPS, _N_LANES, _N_BARS) if is_whole else [],
        is_whole,
        sum(group.shape[1] for group in groups) if is_whole else 0,
        [*notes, *_notes(ranks, groups)],
    )


def _comparable(ranks: list[RankSummary]) -> tuple[list[RankSummary], list[str]]:
    """Ranks with a timeline if one has it, else all; and which were left out."""
    whole = [rank for rank in ranks if rank.is_whole]
    if len(whole) in (0, len(ranks)):
        return ranks, []
    without = [rank.rank for rank in ranks if not rank.is_whole]
    return whole, [f"{named_ranks(without)} recorded without a timeline, so left out: bragg run --data trace"]


def _causes_of(
    late: Sequence[Straggler], groups: Sequence[Group], ranks: Sequence[RankSummary], *, is_whole: bool
) -> tuple[list[tuple[Straggler, LateCause]], PathValues]:
    """Why ranks are late, by comparing them with their peers, whose times by call path are found too."""
    indices = [each.index for each in late]
    compared = {*usual_ones(range(len(ranks))), *indices}
    for index in indices:
        compared |= set(usual_ones(peers_of(index, ranks, indices).tolist()))
    values = path_values(ranks, sorted(compared))
    work = work_of_steps(groups, sorted(compared), is_whole=is_whole)
    return [(each, cause_of(each, work, ranks, values, indices)) for each in late], values


def _exposed(found: Lateness, groups: Sequence[Group]) -> Exposed | None:
    """Of the group with most collectives and all others that its members are in."""
    if not found.wall_ns:
        return None
    first = min(int(group.step.min()) for group in groups)
    n_ranks = len(found.cost_ns)
    alone, waited, is_known = np.zeros(n_ranks), np.zeros(n_ranks), False
    for group in groups:
        steady = group.step > first
        for rows, times in group.blocks():
            members = group.members[rows]
            alone[members] += np.nansum(times.exposed_ns[:, steady], axis=1)
            waited[members] += np.nansum(group.wait_ns(times)[:, steady], axis=1)
            is_known |= not np.isnan(times.exposed_ns).all()
    if not is_known:
        return None
    return Exposed(float(alone.mean()) / found.wall_ns, float(waited.mean()) / found.wall_ns)


def _notes(ranks: Sequence[RankSummary], groups: Sequence[Group]) -> list[str]:
    notes = []
    for group in groups:
        counts = group.n_of_member
        for member in _ended_early(group):
            rank = ranks[int(group.members[member])]
            why = " (its recording has no end)" if rank.is_cut_short else ""
            notes.append(
                f"rank {rank.rank} ended after {counts[member]:,} of {counts.max():,} collectives of group "
                f"{group.name}{why}"
            )
        if group.n_unequal:
            notes.append(
                f"ranks of group {group.name} disagree in {group.n_unequal:,} of {len(group.operation):,} collectives: "
                "do they run one program?"
            )
    return notes


def _cut_short(ranks: Sequence[RankSummary], groups: Sequence[Group]) -> list[str]:
    """The ranks whose recordings have no end, unless that is told of what they did in a group."""
    told = {int(group.members[member]) for group in groups for member in _ended_early(group)}
    cut = [rank.rank for index, rank in enumerate(ranks) if rank.is_cut_short and index not in told]
    return [f"the recording of {named_ranks(cut)} has no end: killed, or still running"] if cut else []


def _ended_early(group: Group) -> list[int]:
    """Members that made fewer collectives than others, as far as they are told."""
    counts = group.n_of_member
    members: list[int] = np.flatnonzero(counts < _ENDED * counts.max()).tolist()
    return members[:_N_ENDED]
