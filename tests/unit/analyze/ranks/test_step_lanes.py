from __future__ import annotations

from dataclasses import replace

import pytest

from benchmarks.straggler_jobs import KINDS, JobPlan, profiles_of
from bragg.analyze.ranks.aligned import Group, groups_of
from bragg.analyze.ranks.lateness import Lateness, lateness_of
from bragg.analyze.ranks.step_lanes import StepLanes, step_lanes
from bragg.analyze.ranks.summarize import summarize
from bragg.model.ranks.summary import RankSummary

LATE, STEP = 1, 6
PLAN = JobPlan(n_ranks=4, n_steps=9, n_layers=2, gpu=lambda rank, step: 1.6 if (rank, step) == (LATE, STEP) else 1.0)


def _compared(plan: JobPlan, apart_ns: int = 0) -> tuple[Lateness, list[Group]]:
    ranks = [_moved(summarize(profile), number * apart_ns) for number, profile in enumerate(profiles_of(plan))]
    groups = groups_of(ranks)
    return lateness_of(ranks, groups, is_whole=True), groups


def _moved(rank: RankSummary, by_ns: int) -> RankSummary:
    table = rank.collectives()
    return replace(rank, collectives=lambda: table.replace(start_ns=table.start_ns + by_ns))


def _lanes(plan: JobPlan, most_ranks: int = 32, most_bars: int = 64) -> StepLanes:
    (found,) = step_lanes(*_compared(plan), 1, most_ranks, most_bars)
    return found


def test_the_step_that_costs_most_is_shown_and_its_ranks_wait_for_the_late_one() -> None:
    lanes = _lanes(PLAN)
    assert lanes.step == STEP - 1
    assert lanes.ranks.tolist() == [0, 1, 2, 3]
    assert all(bar.last == LATE for bars in lanes.bars for bar in bars)
    waits = [sum(bar.arrived_ns - bar.begin_ns for bar in bars) for bars in lanes.bars]
    assert waits[LATE] == 0
    assert min(waits[:LATE] + waits[LATE + 1 :]) > 100_000
    assert all(
        0 <= bar.begin_ns <= bar.arrived_ns <= bar.end_ns <= lanes.length_ns for bars in lanes.bars for bar in bars
    )


def test_collectives_end_at_one_time_although_clocks_of_hosts_differ() -> None:
    # Half a second between hosts, and what no rank can know: a few us at each end.
    (lanes,) = step_lanes(*_compared(PLAN, apart_ns=500_000_000), 1, 32, 64)
    for ends in zip(*([bar.end_ns for bar in bars] for bars in lanes.bars), strict=True):
        assert max(ends) - min(ends) < 50_000


def test_several_steps_come_in_the_order_of_their_cost() -> None:
    found, groups = _compared(PLAN)
    lanes = step_lanes(found, groups, 3, 32, 64)
    cost_ns = [found.cost_ns[:, each.step].max() for each in lanes]
    assert len({each.step for each in lanes}) == 3
    assert cost_ns == sorted(found.cost_ns.max(axis=0), reverse=True)[:3]
    assert lanes[0].step == STEP - 1


def test_lanes_and_bars_are_bounded_and_the_late_rank_stays() -> None:
    lanes = _lanes(PLAN, most_ranks=2, most_bars=1)
    assert LATE in lanes.ranks.tolist()
    assert [len(bars) for bars in lanes.bars] == [1, 1]
    assert lanes.n_left_out == len(_lanes(PLAN).bars[0]) - 1


@pytest.mark.parametrize("kind", ["slow-link", "late-start"])
def test_groups_of_some_ranks_and_late_starts_have_lanes_within_the_step(kind: str) -> None:
    lanes = _lanes(KINDS[kind])
    assert all(bar.begin_ns >= 0 for bars in lanes.bars for bar in bars)
    assert all(bars for bars in lanes.bars)
