from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bragg.analyze.comparing.diff import By, are_alternating, compare_sets
from bragg.analyze.comparing.gates import Gate, Gated, Limit, Verdict, rows_verdict, step_verdict, verdict_of
from bragg.errors import UsageError
from bragg.model import Metric, MetricKind, Profile
from bragg.views.text.diff_text import judged_text, named_frames, step_text
from tests.support.profiles import profile_from_text

SECOND_NS = 1_000_000_000
REGIONS = {
    name: {"count": 10, "total_ns": total_ns, "in_steps_ns": total_ns, "buckets": {}}
    for name, total_ns in {"step": 900, "forward": 500, "backward": 300}.items()
}


def recorded(text: str, began_s: int = 0, wall_s: int = 10) -> Profile:
    meta = {"started_ns": began_s * SECOND_NS or 1, "stopped_ns": (began_s + wall_s) * SECOND_NS, "regions": REGIONS}
    return replace(profile_from_text(text), meta=meta)


def on_host(wall_ms: int, *, ready_ms: int = 0, others_ms: int = 0) -> Profile:
    """A run of which the main thread was ready without a core for some time, and other threads ran for some."""
    ran_ms = wall_ms - ready_ms
    meta = {
        "started_ns": 1,
        "stopped_ns": 1 + wall_ms * 1_000_000,
        "scheduled_before": [7, 3],
        "scheduled": [7 + ran_ms * 1_000_000, 3 + ready_ms * 1_000_000],
        "program_ran_before_ns": 11,
        "program_ran_ns": 11 + (ran_ms + others_ms) * 1_000_000,
    }
    return replace(profile_from_text(f"root\n  forward host={wall_ms}ms"), meta=meta)


BEFORE = recorded("root\n  forward\n    matmul<BM=64 w4 s3> 800us x10\n    forward\n      relu 100us\n  copy 50us")
FASTER = recorded("root\n  forward\n    matmul<BM=64 w4 s3> 500us x10\n    gelu 67us\n  copy 50us", wall_s=14)


def judged(gate: Gate, after: Profile = FASTER, percent: float = 0.0) -> Verdict:
    return verdict_of(gate, [BEFORE], [after], "gpu_time", Limit(percent), named_frames, 1)


def test_a_faster_program_passes_although_a_path_is_new() -> None:
    assert judged(Gate(Gated.TOTAL)).n_exceeded == 0
    rows = rows_verdict(compare_sets([BEFORE], [FASTER], By.PATH), Limit(5), 1)
    assert rows.n_exceeded == 1


@pytest.mark.parametrize(
    ("gate", "before", "after"),
    [
        (Gate(Gated.TOTAL), 950_000, 617_000),
        (Gate(Gated.KERNEL, "matmul"), 800_000, 500_000),
        (Gate(Gated.KERNEL, "*e*lu"), 100_000, 67_000),
        (Gate(Gated.PATH, "forward"), 900_000, 567_000),
        (Gate(Gated.WALL), 10 * SECOND_NS, 14 * SECOND_NS),
        (Gate(Gated.REGION, "backward"), 30, 30),
        (Gate(Gated.REGION, "step"), 90, 90),
    ],
)
def test_what_is_judged_is_what_was_named(gate: Gate, before: float, after: float) -> None:
    verdict = judged(gate)
    assert (verdict.before, verdict.after) == (pytest.approx(before, rel=1e-6), pytest.approx(after, rel=1e-6))
    assert bool(verdict.n_exceeded) == (gate.what is Gated.WALL)


@pytest.mark.parametrize(
    ("ready_s", "after_ns", "is_exceeded", "is_undecided"),
    [(0, 1800, True, False), (7, 1800, False, True), (7, 9000, True, False), (0, 900, False, False)],
)
def test_a_step_that_may_be_longer_for_lack_of_a_core_is_not_decided(
    ready_s: int, after_ns: int, *, is_exceeded: bool, is_undecided: bool
) -> None:
    lack = {"scheduled_before": [0, 0], "scheduled": [3 * SECOND_NS, ready_s * SECOND_NS]}
    step = {**REGIONS["step"], "total_ns": after_ns, "in_steps_ns": after_ns}
    after = replace(FASTER, meta={**FASTER.meta, **lack, "regions": {**REGIONS, "step": step}})
    verdict = judged(Gate(Gated.REGION, "step"), after, percent=5)
    assert (bool(verdict.n_exceeded), verdict.is_undecided) == (is_exceeded, is_undecided)


def test_a_kernel_that_is_not_there_is_not_taken_for_a_function() -> None:
    with pytest.raises(UsageError) as error:
        judged(Gate(Gated.KERNEL, "forwrd"))
    assert "Did you mean" not in error.value.hint
    with pytest.raises(UsageError) as error:
        judged(Gate(Gated.PATH, "forwrd"))
    assert error.value.hint.startswith("Did you mean path:forward?")


def test_growth_within_noise_or_limit_passes() -> None:
    slower = recorded("root\n  forward\n    matmul 900us x10\n    relu 200us\n  copy 50us")
    assert judged(Gate(Gated.TOTAL), slower).n_exceeded == 1
    assert judged(Gate(Gated.TOTAL), slower, percent=22).n_exceeded == 0
    slightly = recorded("root\n  forward\n    matmul 810us x10\n    relu 100us\n  copy 50us")
    assert judged(Gate(Gated.TOTAL), slightly).n_exceeded == 0


def test_growth_that_noise_may_hide_is_not_decided() -> None:
    slower = recorded("root\n  forward\n    matmul 846us x10\n    relu 110us\n  copy 50us")  # by 5.9 %
    verdict = judged(Gate(Gated.TOTAL), slower, percent=2)
    assert (verdict.n_exceeded, verdict.is_undecided) == (0, True)
    assert not judged(Gate(Gated.TOTAL), slower, percent=7).is_undecided
    assert not judged(Gate(Gated.TOTAL)).is_undecided
    much = judged(Gate(Gated.TOTAL), recorded("root\n  forward 1200us\n  copy 50us"), percent=2)
    assert (much.n_exceeded, much.is_undecided) == (1, False)


@pytest.mark.parametrize("gate", [Gated.TOTAL, Gated.WALL])
def test_time_in_which_other_programs_had_the_core_is_not_judged(gate: Gated) -> None:
    calm, busy = on_host(1000, ready_ms=20), on_host(1500, ready_ms=520)
    verdict = verdict_of(Gate(gate), [calm] * 2, [busy] * 2, "host_time", Limit(0.0), named_frames, 1)
    assert (verdict.before, verdict.after) == (pytest.approx(980e6), pytest.approx(980e6))
    assert verdict.taken == (pytest.approx(20e6), pytest.approx(520e6))
    assert (verdict.n_exceeded, verdict.is_undecided) == (0, False)
    assert judged_text(verdict).endswith(", without 20.0 ms and 520 ms in which other programs had the core")
    slower = on_host(1530, ready_ms=20)
    assert verdict_of(Gate(gate), [calm] * 2, [slower] * 2, "host_time", Limit(0.0), named_frames, 1).n_exceeded == 1


def test_a_core_that_the_programs_own_threads_had_is_judged() -> None:
    calm, threads = on_host(1000), on_host(1500, ready_ms=500, others_ms=500)
    verdict = verdict_of(Gate(Gated.TOTAL), [calm] * 2, [threads] * 2, "host_time", Limit(0.0), named_frames, 1)
    assert (verdict.after, verdict.taken, verdict.n_exceeded) == (pytest.approx(1500e6), (0.0, 0.0), 1)


def test_where_a_run_does_not_tell_whether_it_had_a_core_all_time_is_judged() -> None:
    calm, busy = on_host(1000), on_host(1500, ready_ms=500)
    untold = replace(calm, meta={**calm.meta, "program_ran_ns": None})
    verdict = verdict_of(Gate(Gated.TOTAL), [untold], [busy], "host_time", Limit(0.0), named_frames, 1)
    assert (verdict.after, verdict.taken) == (pytest.approx(1500e6), (0.0, 0.0))


def test_steps_are_compared_by_the_time_of_one() -> None:
    more = {name: {**facts, "count": 100, "in_steps_ns": facts["total_ns"] * 8} for name, facts in REGIONS.items()}
    more["step"]["total_ns"] = 7200
    longer = replace(FASTER, meta={**FASTER.meta, "regions": more})
    verdict = judged(Gate(Gated.REGION, "step"), longer)
    assert (verdict.before, verdict.after) == (pytest.approx(90), pytest.approx(72))
    assert (verdict.calls_before, verdict.calls_after, verdict.n_exceeded) == (10, 100, 0)
    forward = judged(Gate(Gated.REGION, "forward"), longer)
    assert (forward.before, forward.after) == (pytest.approx(50), pytest.approx(40))
    shown = step_verdict([BEFORE], [longer])
    assert shown is not None
    assert step_text(shown) == (
        "90 ns before, 72 ns after: -18 ns (-20.0 %), mean of 10 and 100 steps; "
        "one run each, assumed to vary by up to 24.8 %"
    )
    assert step_verdict([BEFORE], [replace(FASTER, meta={})]) is None


def test_of_counts_without_what_is_below_the_whole_is_their_sum() -> None:
    def counted(times: int) -> Profile:
        return replace(BEFORE, metrics={"n": Metric("n", "1", MetricKind.EXCLUSIVE, np.arange(6) * times)})

    sides = [counted(1)], [counted(3)]
    verdict = verdict_of(Gate(Gated.TOTAL), *sides, "n", Limit(5), named_frames, 1)
    assert (verdict.before, verdict.after, verdict.n_exceeded) == (15, 45, 1)
    below = verdict_of(Gate(Gated.PATH, "forward"), *sides, "n", Limit(5), named_frames, 1)
    assert (below.before, below.after) == (10, 30)
    comparison = compare_sets(*sides, By.PATH, "n")
    assert (comparison.before[0], comparison.after[0]) == (15, 45)


def test_what_never_waited_before_waits_now() -> None:
    def run(**own_ns: int) -> Profile:
        own = {name: np.array([0, 0, value]) for name, value in own_ns.items()}
        metrics = {name: Metric(name, "ns", MetricKind.INCLUSIVE, values) for name, values in own.items()}
        return replace(recorded("root\n  f\n    g 1us"), metrics=metrics)

    host, waits = run(host_time=10_000), run(host_time=10_000, wait_time=4_000)
    verdict = verdict_of(Gate(Gated.TOTAL), [host], [waits], "wait_time", Limit(0), named_frames, 1)
    assert (verdict.before, verdict.after, verdict.n_exceeded) == (0, 4000, 1)
    assert compare_sets([host], [waits], By.PATH, "wait_time").change[0] == 4000


def test_names_that_nothing_has_are_an_error() -> None:
    for gate in (Gate(Gated.KERNEL, "forward"), Gate(Gated.PATH, "matmu"), Gate(Gated.REGION, "data loading")):
        with pytest.raises(UsageError):
            judged(gate)


def test_rows_that_grow_by_less_than_a_hundredth_of_the_whole_pass() -> None:
    before = recorded("root\n  a 990us\n  b 5us")
    after = recorded("root\n  a 990us\n  b 14us")
    assert rows_verdict(compare_sets([before], [after], By.PATH), Limit(5), 1).n_exceeded == 0
    assert rows_verdict(compare_sets([before], [after], By.PATH), Limit(5, 0.0), 1).n_exceeded == 1


def test_runs_in_turn_are_recognised_in_any_order_of_files() -> None:
    before = [recorded("root\n  a 1us", began_s) for began_s in (50, 10, 30)]
    after = [recorded("root\n  a 2us", began_s) for began_s in (20, 60, 40)]
    assert are_alternating(before, after)
    assert not are_alternating(before[:2], after)
    assert not are_alternating(before[:1], after[:1])
    assert not are_alternating(before, [recorded("root\n  a 2us", began_s) for began_s in (70, 80, 90)])
    assert compare_sets(before, after, By.PATH).is_paired


def test_sets_are_compared_over_the_paths_of_all_runs() -> None:
    before = [recorded("root\n  a 10us\n  rare 1us"), recorded("root\n  a 12us"), recorded("root\n  a 11us")]
    comparison = compare_sets(before, [recorded("root\n  a 22us\n  new 4us")], By.KERNEL)
    found = {
        comparison.tree.frames.name[comparison.tree.frame[row]]: (comparison.before[row], comparison.after[row])
        for row in comparison.rows.tolist()
    }
    assert found == {"a": (11_000, 22_000), "new": (0, 4_000), "rare": (pytest.approx(1000 / 3), 0)}
    assert np.all(comparison.spread.margin() >= 0)
