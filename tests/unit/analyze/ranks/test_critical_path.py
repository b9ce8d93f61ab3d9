from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.straggler_jobs import HEALTHY, KINDS, JobPlan, profiles_of
from bragg.analyze.ranks.aligned import groups_of
from bragg.analyze.ranks.critical_path import CriticalPath, critical_path
from bragg.analyze.ranks.summarize import summarize
from bragg.model.ranks.summary import RankSummary
from tests.unit.analyze.ranks.test_clocks import EPOCH_NS, US, rank_summary

STEPS = 4


def ranks_of(work_us: np.ndarray, transfer_us: np.ndarray, skew_ns: int = 0) -> list[RankSummary]:
    """Ranks that work, and then wait in a collective for the one that works longest: [ranks, steps], [steps]."""
    ends = np.cumsum(work_us.max(axis=0) + transfer_us) * US
    begins = np.append(0, ends[:-1])
    found = []
    for number, worked in enumerate(work_us):
        summary = rank_summary(number, EPOCH_NS + number * skew_ns + ends)
        start = EPOCH_NS + number * skew_ns + begins + worked * US
        lasted = EPOCH_NS + number * skew_ns + ends - start
        columns = {"start_ns": start.astype(np.int64), "duration_ns": lasted.astype(np.int64)}
        columns["exposed_ns"] = columns["duration_ns"]
        found.append(with_columns(summary, columns))
    return found


def with_columns(summary: RankSummary, columns: dict[str, np.ndarray]) -> RankSummary:
    table = summary.collectives().replace(**columns)
    return replace(summary, collectives=lambda: table)


def path_of(ranks: list[RankSummary]) -> CriticalPath:
    found = critical_path(len(ranks), groups_of(ranks))
    assert found is not None
    return found


@pytest.mark.parametrize("skew_ns", [0, 3_600_000_000_000])
def test_the_path_leads_through_the_last_rank_of_each_step_whatever_clocks_say(skew_ns: int) -> None:
    work = np.array([[100, 100, 100, 100], [150, 300, 90, 90], [100, 100, 100, 200]])
    path = path_of(ranks_of(work, np.full(STEPS, 10), skew_ns))
    # What came before the first collective has ended is not known.
    assert path.work_ns.tolist() == [100 * US, 300 * US, 200 * US]
    assert (path.transfer_ns, path.wall_ns) == (40 * US, 640 * US)
    assert [(each.rank, each.saved_ns) for each in path.what_if] == [(1, 200 * US), (2, 100 * US)]
    assert path.slack_ns.tolist() == [75 * US, 5 * US, 25 * US]


def test_an_operation_that_takes_longer_than_its_median_is_told() -> None:
    path = path_of(ranks_of(np.full((2, 8), 100), np.array([10, 10, 10, 90, 10, 10, 10, 10])))
    assert [(each.rank, each.operation, each.saved_ns) for each in path.what_if] == [(None, "all-reduce", 80 * US)]


def test_collectives_that_take_no_time_are_passed_once() -> None:
    ranks = ranks_of(np.full((2, 4), 100), np.full(4, 10))
    ends = ranks[0].collectives().start_ns + ranks[0].collectives().duration_ns
    nothing = {"start_ns": ends, "duration_ns": np.zeros(4, np.int64)}
    path = path_of([with_columns(rank, nothing) for rank in ranks])
    assert path.wall_ns == ends[-1] - ends[0] + 1


def test_recordings_that_disagree_on_the_order_of_collectives_end_the_path() -> None:
    ranks = []
    orders, lasted_us = ([0, 1, 2], [1, 0, 2]), ([20, 10, 10], [20, 10, 20])
    for rank, order, us in zip(ranks_of(np.full((2, 3), 100), np.full(3, 10)), orders, lasted_us, strict=True):
        ends, lasted = rank.collectives().start_ns + rank.collectives().duration_ns, np.array(us, np.int64) * US
        columns = {"sequence": np.array(order, np.int64), "start_ns": ends - lasted, "duration_ns": lasted}
        ranks.append(with_columns(rank, columns))
    assert 0 < path_of(ranks).wall_ns < 1_000 * US


def test_times_that_fit_in_four_bytes_have_ends_that_need_not() -> None:
    columns = {"start_ns": np.array([0, 2_000_000_000]), "duration_ns": np.full(2, 1_000_000_000)}
    ranks = [with_columns(rank, columns) for rank in ranks_of(np.full((2, 2), 100), np.full(2, 10))]
    assert groups_of(ranks)[0].times([0, 1]).end_ns.tolist() == [[1e9, 3e9]] * 2


def test_a_job_without_collectives_has_no_path() -> None:
    assert critical_path(2, []) is None


def test_the_saving_of_a_planted_straggler_is_what_a_healthy_job_is_shorter() -> None:
    plan = KINDS["slow-gpu"]
    slow = path_of([summarize(profile) for profile in profiles_of(plan)])
    usual = path_of([summarize(profile) for profile in profiles_of(JobPlan(seed=plan.seed))])
    (rank,) = plan.truth.ranks
    assert slow.what_if[0].rank == rank
    assert slow.what_if[0].saved_ns == pytest.approx(slow.wall_ns - usual.wall_ns, rel=0.25)
    assert np.nanargmin(slow.slack_ns) == rank


def test_in_a_healthy_job_no_rank_alone_would_save_much() -> None:
    path = path_of([summarize(profile) for profile in profiles_of(HEALTHY["healthy-0"])])
    assert all(each.saved_ns < 0.01 * path.wall_ns for each in path.what_if if each.rank is not None)


def test_members_of_several_groups_are_ahead_of_a_late_rank_once() -> None:
    """The job would save 2.0 ms a step, by its generator's own clock; in both of its groups together 4.2 ms."""
    plan = JobPlan(n_tensor=4, gpu=lambda rank, _: 1.25 if rank == 2 else 1.0)
    path = path_of([summarize(profile) for profile in profiles_of(plan)])
    healthy = path_of([summarize(profile) for profile in profiles_of(replace(plan, gpu=lambda *_: 1.0))])
    idea = path.what_if[0]
    assert idea.rank == 2
    assert idea.saved_ns == pytest.approx(path.wall_ns - healthy.wall_ns, rel=0.15)
