from __future__ import annotations

from copy import copy
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from benchmarks.straggler_jobs import HEALTHY, KINDS, JobPlan, profiles_of, write_job_files
from bragg.analyze.ranks.answer import RanksAnswer, compare_ranks
from bragg.analyze.ranks.findings import findings_of
from bragg.analyze.ranks.lateness import Lateness
from bragg.analyze.ranks.stragglers import When, stragglers_of
from bragg.analyze.ranks.summarize import summarize
from bragg.cli.rank_files import read_ranks
from bragg.model import SliceTable
from bragg.model.ranks.summary import PathTable
from bragg.views.text.ranks_text import ranks_lines
from bragg.views.text.style import Style
from tests.support.profiles import profile_from_text


def _answer(plan: JobPlan) -> RanksAnswer:
    return compare_ranks([summarize(profile) for profile in profiles_of(plan)])


@pytest.mark.parametrize("kind", KINDS)
def test_a_planted_straggler_is_named_with_its_steps_and_its_cause(kind: str, tmp_path: Path) -> None:
    truth = KINDS[kind].truth
    write_job_files(KINDS[kind], tmp_path)
    summaries = read_ranks([tmp_path]).summaries
    answer = compare_ranks(summaries, ["a note"] * 9)
    assert len(ranks_lines(answer, Style())) <= 25
    if truth.cause == "slow link":
        assert answer.link is not None
        assert [answer.ranks[index].rank for index in answer.link.ranks] == list(truth.ranks)
        assert not answer.stragglers
        return
    assert answer.link is None
    (found,) = answer.stragglers
    late, cause = found
    assert (answer.ranks[late.index].rank,) == truth.ranks
    assert (late.when.value, cause.reason.value) == (truth.when, truth.cause)
    if truth.first_step is not None:
        assert late.steps[0] + 1 == truth.first_step
    assert f"rank {truth.ranks[0]} " in findings_of(answer)[0].message


@pytest.mark.parametrize("kind", HEALTHY)
def test_no_rank_of_a_healthy_job_is_named(kind: str) -> None:
    answer = _answer(HEALTHY[kind])
    assert not answer.stragglers
    assert answer.link is None
    assert not findings_of(answer)


@pytest.mark.parametrize(("late_ms", "is_named"), [(8.7, False), (40.0, True)])
def test_one_step_that_takes_somewhat_longer_is_no_straggler(late_ms: float, is_named: bool) -> None:
    """Two healthy H100: 39 steps of 20 ms, of which one took 8.7 ms longer."""
    cost_ns = np.zeros((2, 39))
    cost_ns[1, 6] = late_ms * 1e6
    found = Lateness(cost_ns, np.full(39, 20e6), np.zeros(2), is_unit_step=True)
    named = stragglers_of(found, [], np.zeros(2), is_whole=True)
    assert [(each.index, each.when, each.steps.tolist()) for each in named] == [(1, When.ONCE, [6])] * is_named


def test_the_cost_of_a_straggler_is_what_the_job_would_save_without_it() -> None:
    """The time that a healthy rank takes for the same steps is the truth."""
    slow, healthy = KINDS["slow-gpu"], JobPlan(seed=KINDS["slow-gpu"].seed)
    answer = _answer(slow)
    (late, _), found = answer.stragglers[0], answer.lateness
    usual = _answer(healthy).lateness
    assert found is not None
    assert usual is not None
    assert late.cost_ns == pytest.approx(found.wall_ns - usual.wall_ns, rel=0.15)


@pytest.mark.parametrize("n_tensor", [2, 4])
@pytest.mark.parametrize("late", ["gpu", "host_us"])
def test_waiting_in_several_groups_at_once_counts_once(n_tensor: int, late: str) -> None:
    """Of ranks in a tensor-parallel and in a data-parallel group: what the job would save is the truth again."""
    usual, more = {"gpu": (1.0, 1.25), "host_us": (0.0, 3000.0)}[late]
    healthy = JobPlan(n_tensor=n_tensor)
    answer, without = (
        _answer(replace(healthy, **{late: lambda rank, step: more if rank == 2 else usual})),
        _answer(healthy),
    )
    ((straggler, _),) = answer.stragglers
    assert answer.lateness is not None
    assert without.lateness is not None
    assert (straggler.index, straggler.when) == (2, When.ALWAYS)
    assert straggler.cost_ns == pytest.approx(answer.lateness.wall_ns - without.lateness.wall_ns, rel=0.1)


@pytest.mark.parametrize(("n_ranks", "n_tensor"), [(2, 1), (8, 1), (4, 2), (8, 4)])
def test_a_late_start_is_named_once_with_what_it_costs(n_ranks: int, n_tensor: int) -> None:
    plan = JobPlan(n_ranks=n_ranks, n_tensor=n_tensor, start_ms=lambda rank: 3000.0 * (rank == 1))
    answer = _answer(plan)
    ((late, cause),) = answer.stragglers
    assert (late.index, late.when.value, cause.reason.value, late.steps.tolist()) == (1, "start", "late start", [-1])
    assert late.cost_ns == pytest.approx(3e9, rel=0.01)
    (finding,) = findings_of(answer)
    assert " wait 3 s for it before the first step is over" in finding.message.replace("waits", "wait")


def test_a_late_start_that_goes_on_in_the_first_steps_is_one() -> None:
    plan = JobPlan(host_us=lambda rank, step: 400_000.0 if rank == 3 and step < 3 else 0.0)
    answer = _answer(plan)
    ((late, cause),) = answer.stragglers
    assert (late.when.value, cause.reason.value, late.steps.tolist()) == ("start", "late start", [-1, 0, 1])
    assert late.cost_ns == pytest.approx(1.2e9, rel=0.01)
    assert "wait 1.2 s for it before step 2 is over" in findings_of(answer)[0].message


@pytest.mark.filterwarnings("error")
def test_a_program_of_one_step_has_no_rhythm() -> None:
    """Rank 0 does the work of its only step while it waits, so rank 1 comes later to each bucket."""
    answer = _answer(JobPlan(n_ranks=2, n_steps=1, start_ms=lambda rank: 3000.0 * rank))
    assert [(late.index, late.when.value) for late, _ in answer.stragglers] == [(1, "start")]


def test_clocks_of_hosts_do_not_matter() -> None:
    plan = KINDS["slow-gpu-since"]
    answers = [_answer(JobPlan(**{**vars(plan), "skew_ms": skew, "drift_ppm": 0.0})) for skew in (0.0, 3_600_000.0)]
    costs = [answer.lateness.cost_ns for answer in answers if answer.lateness]
    np.testing.assert_allclose(costs[0], costs[1], atol=10)


def test_without_a_timeline_the_sums_name_the_rank_that_waits_least() -> None:

    profiles = [replace(each, slices=SliceTable.empty()) for each in profiles_of(KINDS["slow-gpu"])]
    answer = compare_ranks([summarize(profile) for profile in profiles])
    assert not answer.is_whole
    ((late, cause),) = answer.stragglers
    assert (answer.ranks[late.index].rank, late.when.value, cause.reason.value) == (3, "whole", "slow GPU")
    profiles = [replace(each, slices=SliceTable.empty()) for each in profiles_of(HEALTHY["healthy-0"])]
    assert not compare_ranks([summarize(profile) for profile in profiles]).stragglers


def test_a_rank_that_was_killed_is_told_and_the_rest_is_compared() -> None:
    answer = _answer(KINDS["killed"])
    assert "rank 5 ended after 100 of 160 collectives of group 0 (its recording has no end)" in answer.notes


def test_ranks_that_were_killed_are_told_without_a_collective_too() -> None:
    text = "root\n  work host=5ms"
    ranks = [
        summarize(replace(profile_from_text(text), meta={"capture": {"complete": rank > 2}}), rank) for rank in range(4)
    ]
    answer = compare_ranks(ranks)
    assert answer.lateness is None
    assert answer.notes == ["the recording of ranks 0-2 has no end: killed, or still running"]


def test_ranks_that_run_different_programs_are_told() -> None:
    plans = [JobPlan(n_ranks=2, n_steps=5, bucket_us=bucket) for bucket in (500.0, 700.0)]
    answer = compare_ranks([summarize(profiles_of(plan)[rank]) for rank, plan in enumerate(plans)])
    assert "ranks of group 0 disagree in 20 of 20 collectives: do they run one program?" in answer.notes


def test_exposed_communication_is_what_nothing_ran_beside() -> None:
    beside, after = (_answer(JobPlan(noise=0.0, one_stream=one_stream, seed=5)).exposed for one_stream in (False, True))
    assert beside is not None
    assert after is not None
    step = _answer(JobPlan(noise=0.0, one_stream=True, seed=5)).lateness
    assert step is not None
    # One bucket of 500 us after each backward pass, and the waiting for the slowest GPU.
    assert after.share - after.waiting_share == pytest.approx(500e3 / np.median(step.step_ns), rel=0.05)
    assert beside.share - beside.waiting_share == pytest.approx(after.share - after.waiting_share, rel=0.1)


def test_imbalance_names_the_path_and_the_rank() -> None:
    worst = _answer(KINDS["slow-kernel"]).imbalances[0]
    assert worst.rank == 4
    assert worst.path.endswith("softmax_kernel")
    assert worst.ratio == pytest.approx(3 / 1.25 - 1, rel=0.05)
    assert not _answer(HEALTHY["healthy-0"]).imbalances


def test_hosts_that_wait_while_collectives_are_set_up_name_the_rank_that_starts_late() -> None:
    """NCCL connects ranks at their first collective, by the host: no kernel waits."""
    summaries = [summarize(profile) for profile in profiles_of(JobPlan(n_ranks=3))]
    waited = []
    for summary in summaries:
        more = PathTable(np.array([7]), np.array([7]), np.ones(1, np.int32), np.zeros(1), np.zeros(1), np.array([3e9]))
        is_late = summary.rank == 1
        paths = summary.paths() if is_late else PathTable.concatenate([summary.paths(), more])
        waited.append(replace(summary, paths=partial(copy, paths)))
    ((late, cause),) = compare_ranks(waited).stragglers
    assert (late.index, late.when.value, cause.reason.value) == (1, "start", "late start")
    assert late.cost_ns == pytest.approx(3e9, rel=1e-3)


def test_what_the_host_does_in_collectives_is_theirs_and_imports_are_nobodys() -> None:
    text = """
        root
          train.py:1@main
            <frozen importlib._bootstrap>:5@load host=90ms
            collective allreduce[4 f32, group 0 of 2] #operator
              NCCL: ncclAllReduce host=30ms
            log.py:3@write host=20ms
    """
    found = summarize(profile_from_text("\n".join(line[8:] for line in text.splitlines())))
    assert dict(zip(found.labels(), found.paths().host_ns.tolist(), strict=True)) == {
        "train.py:1@main > collective allreduce[4 f32, group 0 of 2] > NCCL: ncclAllReduce": 30_000_000,
        "train.py:1@main > log.py:3@write": 20_000_000,
    }
    assert found.paths().is_communication.tolist() == [1, 0]
