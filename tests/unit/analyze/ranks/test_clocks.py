from __future__ import annotations

import numpy as np
import pytest

from bragg.analyze.ranks.aligned import groups_of
from bragg.analyze.ranks.clocks import Alignment, Basis, alignments, clock_notes
from bragg.model.ranks.clock import RankClock
from bragg.model.ranks.summary import CollectiveCallTable, CollectiveTable, PathTable, RankSummary

EPOCH_NS = 1_700_000_000_000_000_000
SECOND_NS = 1_000_000_000
US = 1_000


def rank_summary(
    number: int, ends_ns: np.ndarray, host: str = "", clock: RankClock | None = None, group: str = "0"
) -> RankSummary:
    """A rank whose collectives end at times of its own clock."""
    n = len(ends_ns)
    columns = {name: np.zeros(n, np.int64) for name in CollectiveTable.columns()}
    columns |= {"call": np.zeros(n, np.int32), "step": np.zeros(n, np.int32), "sequence": np.arange(n)}
    columns |= {"duration_ns": np.full(n, 100 * US), "start_ns": ends_ns.astype(np.int64) - 100 * US}
    size = np.array([4096])
    return RankSummary(
        rank=number,
        host=host or f"node{number}",
        device="",
        wall_ns=SECOND_NS,
        is_whole=True,
        is_cut_short=False,
        calls=CollectiveCallTable([group], ["all-reduce"], ["f32"], size, size),
        collectives=lambda: CollectiveTable(**columns),
        paths=PathTable.empty,
        labels=list,
        clock=clock or RankClock(),
    )


def job(n_ranks: int, n_collectives: int, span_s: float, **how: float) -> tuple[list[RankSummary], np.ndarray]:
    """Ranks with clocks of their own, and the true time of each collective."""
    random = np.random.default_rng(3)
    true_ns = np.linspace(0, span_s * SECOND_NS, n_collectives)
    offsets = how["offset_ns"] * random.standard_normal(n_ranks)
    drifts = how["drift"] * random.standard_normal(n_ranks)
    ranks = []
    for number in range(n_ranks):
        jitter = how.get("jitter_ns", 8 * US) * random.standard_normal(n_collectives)
        shown = true_ns + jitter + offsets[number] + drifts[number] * true_ns
        ranks.append(rank_summary(number, EPOCH_NS + np.round(shown).astype(np.int64)))
    shown = [true_ns * (1 + drift) + offset for drift, offset in zip(drifts, offsets, strict=True)]
    return ranks, EPOCH_NS + np.round(shown).astype(np.int64)


def test_dense_collectives_align_clocks_of_5_ppm_and_2_ms_within_a_microsecond() -> None:
    ranks, shown = job(8, 4000, 40.0, offset_ns=2e6, drift=5e-6)
    found = alignments(ranks, groups_of(ranks))
    for number in range(1, 8):
        clock = found[number]
        assert clock is not None
        assert clock.basis is Basis.COLLECTIVES
        error_ns = np.abs(clock.aligned(shown[number]) - shown[0])
        assert error_ns.max() <= 1 * US
        # What is stated is not less than the error: ends scatter by 8 us on both ranks.
        assert error_ns.max() < clock.uncertainty_ns < 12 * US


def test_some_ends_that_are_far_off_move_no_clock() -> None:
    ranks, shown = job(2, 2000, 20.0, offset_ns=2e6, drift=5e-6)
    late = ranks[1].collectives().start_ns.copy()
    late[::50] += 20_000 * US
    ranks[1] = rank_summary(1, late + 100 * US)
    clock = alignments(ranks, groups_of(ranks))[1]
    assert clock is not None
    assert np.abs(clock.aligned(shown[1]) - shown[0]).max() <= 1 * US


def test_ranks_of_one_boot_are_aligned_without_a_collective() -> None:
    ends = EPOCH_NS + np.arange(3)
    clocks = [RankClock("b1", 5_000_000_000), RankClock("b1", 5_000_000_700), RankClock("b2", 5_000_000_700)]
    ranks = [rank_summary(number, ends, "n", clock) for number, clock in enumerate(clocks)]
    reference, same, other = alignments(ranks, groups_of(ranks))
    assert (reference, other) == (Alignment(), None)
    assert same is not None
    assert (same.basis, same.aligned(np.array([EPOCH_NS]))[0]) == (Basis.SAME_HOST, EPOCH_NS - 700)
    assert same.uncertainty_ns == 1 * US


def test_one_rank_of_a_host_aligns_the_others() -> None:
    """Which keep their exact distance from each other."""
    ranks, shown = job(3, 2000, 20.0, offset_ns=2e6, drift=0.0)
    apart_ns = int(shown[2, 0] - shown[1, 0])
    clocks = [RankClock("b0", 0), RankClock("b1", 1000), RankClock("b1", 1000 + apart_ns)]
    ranks = [rank_summary(row, shown[row], f"node{row > 0}", clock) for row, clock in enumerate(clocks)]
    _, first, second = alignments(ranks, groups_of(ranks))
    assert first is not None
    assert second is not None
    assert np.abs(first.aligned(shown[1]) - second.aligned(shown[2])).max() <= 1


def test_groups_that_overlap_align_ranks_that_share_none() -> None:
    ranks, shown = job(3, 2000, 20.0, offset_ns=2e6, drift=5e-6)
    pairs = [rank_summary(0, shown[0], group="a"), ranks[1], rank_summary(2, shown[2], group="b")]
    both = rank_summary(1, shown[1])
    calls = CollectiveCallTable(["a", "b"], ["all-reduce"] * 2, ["f32"] * 2, np.array([4096] * 2), np.array([1, 1]))
    doubled = both.collectives().concatenate([both.collectives(), both.collectives()])
    call = np.repeat([0, 1], len(shown[1])).astype(np.int32)
    pairs[1] = RankSummary(**{**vars(both), "calls": calls, "collectives": lambda: doubled.replace(call=call)})
    clock = alignments(pairs, groups_of(pairs))[2]
    assert clock is not None
    assert np.abs(clock.aligned(shown[2]) - shown[0]).max() <= 1 * US


@pytest.mark.parametrize(("way_ns", "basis"), [(40 * US, Basis.EXCHANGE), (4, Basis.EXCHANGE)])
def test_an_exchange_aligns_what_has_no_collectives(way_ns: int, basis: Basis) -> None:
    """Its clock is 3 ms behind and falls behind by 5 ppm; half of the time on the way is not known."""
    exchanges = ((EPOCH_NS, 3_000 * US, way_ns), (EPOCH_NS + 60 * SECOND_NS, 3_300 * US, way_ns))
    ranks = [rank_summary(0, np.empty(0)), rank_summary(1, np.empty(0), clock=RankClock(exchanges=exchanges))]
    clock = alignments(ranks, [])[1]
    assert clock is not None
    assert (clock.basis, clock.uncertainty_ns) == (basis, way_ns / 2)
    assert clock.aligned(np.array([EPOCH_NS + 30 * SECOND_NS]))[0] == EPOCH_NS + 30 * SECOND_NS + 3_150 * US


def test_the_surer_of_exchange_and_collectives_counts() -> None:
    ranks, _ = job(2, 2000, 20.0, offset_ns=2e6, drift=5e-6)
    for way_ns, basis in ((100 * US, Basis.COLLECTIVES), (1 * US, Basis.EXCHANGE)):
        told = RankClock(exchanges=((EPOCH_NS, 0, way_ns),))
        asked = RankSummary(**{**vars(ranks[1]), "clock": told})
        clock = alignments([ranks[0], asked], groups_of([ranks[0], asked]))[1]
        assert clock is not None
        assert clock.basis is basis


def test_no_alignment_is_claimed_without_data_and_clocks_that_are_far_apart_are_named() -> None:
    ranks, shown = job(2, 100, 1.0, offset_ns=0.0, drift=0.0)
    ranks[1] = rank_summary(1, shown[1] + 93 * SECOND_NS)
    few = [rank_summary(number, EPOCH_NS + np.arange(3)) for number in range(2)]
    (note,) = clock_notes([*few[:1], *few], [None] * 3)  # two ranks of the first host
    assert note.startswith("no data aligns the clock of node1 with that of node0")
    aligned, far = clock_notes(ranks, alignments(ranks, groups_of(ranks)))
    assert aligned.startswith("clocks of 2 hosts are aligned by collectives, within 7.")
    assert far == "the clock of node1 is 93.0 s ahead of that of node0"
    assert list(clock_notes(few, alignments(few, groups_of(few)))) == [
        "no data aligns the clock of node1 with that of node0: their times are not compared"
    ]
