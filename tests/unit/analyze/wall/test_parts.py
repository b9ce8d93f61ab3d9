from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from bragg.analyze.wall.parts import wall_parts
from bragg.model import Profile
from bragg.views.text.wall_line import wall_json, wall_line
from tests.support.profiles import profile_from_text
from tests.support.traces import trace_from_text

MS = 1_000_000
BEGAN = 1_795_404_889_000_000_000
BINS = 1000


def recorded(*, devices: int = 1, n_bins: int = BINS, works_from: int = 0, per_bin: int = 10, **meta: Any) -> Profile:
    """A program whose GPUs begin to work after 100 ms and are busy 40 % of each bin of 1 ms from one on."""
    busy = [0.4 * MS * (bin >= works_from) for bin in range(n_bins)]
    launches = [per_bin if bin >= works_from or not bin else 0 for bin in range(n_bins)]
    curve = {"start_ns": BEGAN + 100 * MS, "bin_ns": MS, "busy_ns": list(map(int, busy)), "launches": launches}
    facts = {
        "started_ns": BEGAN,
        "stopped_ns": BEGAN + (200 + n_bins) * MS,
        "gpu_first_ns": BEGAN + 100 * MS,
        "gpu_last_ns": BEGAN + (100 + n_bins) * MS,
        "gpu_activity": {str(device): curve for device in range(devices)},
    }
    return replace(profile_from_text("root\n  k 1ms x9000"), meta={**facts, **meta})


def steps(*durations_ms: float, count: int | None = None, last_ms: float | None = None) -> dict[str, Any]:
    ends, at = [], 0.0
    for lasts in durations_ms:
        at += lasts * MS
        ends.append(int(at))
    began = BEGAN + 100 * MS
    kept = {"began_ns": began, "ends_after_ns": ends, "last_ns": int(began + (last_ms or at / MS) * MS)}
    return {"regions": {"step": {"count": count or len(ends), "first_calls": kept}, "forward": {"count": 1}}}


def test_a_stretch_without_launches_is_the_warm_up() -> None:
    assert wall_line(wall_parts(recorded(works_from=300))) == (
        "start 100 ms | warm-up 300 ms | steady 700 ms (7,000 launches, GPU busy 40 %) | teardown 100 ms"
    )


@pytest.mark.parametrize("gpu_last_ns", [BEGAN + (99 + BINS) * MS + MS // 2, None])
def test_a_run_may_end_before_the_last_bin_of_its_curve(gpu_last_ns: int | None) -> None:
    stopped_ns = BEGAN + (99 + BINS) * MS + 3 * MS // 4
    parts = wall_parts(recorded(works_from=300, gpu_last_ns=gpu_last_ns, stopped_ns=stopped_ns))
    assert parts is not None
    assert parts.steady is not None
    assert abs(parts.steady.ends_ns - (gpu_last_ns or stopped_ns)) <= 256  # of a float64
    assert parts.steady.n_launches == 7000


def test_slow_first_steps_are_the_warm_up() -> None:
    line = wall_line(wall_parts(recorded(**steps(200, 100, *[10] * 62, count=72, last_ms=1000))))
    assert line == (
        "start 100 ms | warm-up 300 ms | steady 700 ms (70 steps of 10.0 ms, GPU busy 40 %) | teardown 100 ms"
    )


def test_steps_of_decoding_are_called_so() -> None:
    told = steps(200, 100, *[10] * 62, count=72, last_ms=1000)["regions"]["step"]
    line = wall_line(wall_parts(recorded(regions={"decoding step": told})))
    assert "| steady 700 ms (70 decoding steps of 10.0 ms, GPU busy 40 %) |" in line


def test_a_first_step_of_which_only_the_end_is_known_is_a_warm_up() -> None:
    recorded_steps = steps(*[10] * 70, last_ms=700)
    kept = recorded_steps["regions"]["step"]["first_calls"]
    kept["began_ns"] += 300 * MS
    kept["last_ns"] += 300 * MS
    del recorded_steps["regions"]["forward"]
    line = wall_line(wall_parts(recorded(**recorded_steps)))
    assert line == (
        "start 100 ms | warm-up 300 ms | steady 700 ms (70 steps of 10.0 ms, GPU busy 40 %) | teardown 100 ms"
    )


def test_a_slow_step_in_between_belongs_to_the_steady_state() -> None:
    line = wall_line(wall_parts(recorded(n_bins=1090, **steps(100, *[10] * 40, 500, *[10] * 9))))
    assert "| warm-up 100 ms | steady 990 ms (50 steps of 19.8 ms, " in line


def test_work_after_the_steps_is_no_teardown() -> None:
    parts = wall_parts(recorded(**steps(*[10] * 40)))
    assert wall_line(parts).startswith("start 100 ms | warm-up 0 ns | steady ")
    assert parts is not None
    assert [name for name, _ in parts.durations()][-1] == "rest"


def backlog(*, after: int) -> Profile:
    """Steps that the host has launched after 100 ms and the GPU has done after 500 ms, then other work of 500 ms.

    Args:
        after: Launches in each ms of the other work; the steps make 10.
    """
    profile = recorded(**steps(*[2] * 50))
    (curve,) = profile.meta["gpu_activity"].values()
    launches = [10] * 500 + [after] * 500
    told = {**curve, "busy_ns": [MS] * 500 + [MS * (after > 0)] * 500, "launches": launches}
    return replace(profile, meta={**profile.meta, "gpu_activity": {"0": told}})


def test_steps_last_until_the_gpu_has_done_what_they_launched() -> None:
    parts = wall_parts(backlog(after=0))
    assert parts is not None
    assert parts.steady is not None
    assert parts.steady.step_ns == pytest.approx(10 * MS, rel=1e-4)
    assert [name for name, _ in parts.durations()][-1] == "teardown"


def test_other_work_after_the_steps_is_not_theirs() -> None:
    parts = wall_parts(backlog(after=2))
    assert parts is not None
    assert parts.steady is not None
    assert parts.steady.duration_ns == pytest.approx(150 * MS)


def test_several_gpus_are_as_busy_as_each_is() -> None:
    assert "GPU 0 busy 40 %, GPU 1 busy 40 %" in wall_line(wall_parts(recorded(devices=2)))
    assert "8 GPUs busy 40 % to 40 %" in wall_line(wall_parts(recorded(devices=8)))


def test_a_steady_state_that_launches_most_has_an_overhead_of_its_own() -> None:
    overhead = {"work_ns": 1000 * MS, "launches_ns": 70 * MS, "launches_calls": 7010}
    parts = wall_parts(recorded(works_from=100, overhead=overhead))
    assert parts is not None
    assert parts.steady is not None
    assert parts.steady.overhead is None  # about that of the run
    parts = wall_parts(recorded(works_from=600, overhead=overhead))
    assert "steady 400 ms (4,000 launches, GPU busy 40 %, recording at least +21 %)" in wall_line(parts)
    told = wall_json(parts)
    assert told is not None
    assert told["steady"]["overhead"]["slowdown"] == pytest.approx(70 / 330, rel=0.01)
    short = wall_parts(recorded(works_from=700, overhead=overhead))
    assert short is not None
    assert short.steady is not None
    assert short.steady.overhead is None  # other calls decide what one costs


def test_kernels_that_ran_once_each_have_no_steady_state() -> None:
    profile = replace(recorded(per_bin=0), metrics={})
    assert wall_line(wall_parts(profile)) == "start 100 ms | GPU work 1.00 s | teardown 100 ms"


@pytest.mark.parametrize(
    "meta",
    [
        {"started_ns": None},
        {"stopped_ns": BEGAN - 1},
        {"gpu_first_ns": BEGAN - 1},
        {"merged": [{}, {}]},
    ],
)
def test_of_what_is_not_known_nothing_is_said(meta: dict[str, Any]) -> None:
    parts = wall_parts(recorded(**meta))
    assert parts is None
    assert (wall_line(parts), wall_json(parts)) == ("", None)
    assert wall_parts(trace_from_text("stream 1\n  0-10 a")) is None


@pytest.mark.parametrize(
    "curve",
    [
        3,
        {"0": 3},
        {"x": {}},
        {"0": {"start_ns": 1, "bin_ns": 0, "busy_ns": [1], "launches": [1]}},
        {"0": {"start_ns": 1, "bin_ns": 1, "busy_ns": [1, 2], "launches": [1]}},
        {"0": {"start_ns": 1, "bin_ns": 1, "busy_ns": ["a"], "launches": [1]}},
        {"0": {"start_ns": 1 << 62, "bin_ns": 1 << 62, "busy_ns": [1] * 9, "launches": [1 << 62] * 9}},
    ],
)
def test_a_damaged_curve_is_none(curve: Any) -> None:
    parts = wall_parts(recorded(gpu_activity=curve))
    assert parts is not None
    assert parts.steady is None


@pytest.mark.parametrize(
    "first_calls",
    [
        3,
        {"began_ns": BEGAN, "last_ns": BEGAN, "ends_after_ns": []},
        {"began_ns": BEGAN, "last_ns": BEGAN + 9, "ends_after_ns": [3, 2]},
        {"began_ns": BEGAN, "last_ns": BEGAN + 1, "ends_after_ns": [1, 2, 3]},
        {"began_ns": BEGAN, "last_ns": BEGAN + 9, "ends_after_ns": [1, "2", 3]},
        {"began_ns": BEGAN, "last_ns": BEGAN + 9, "ends_after_ns": [1] * 99},
    ],
)
def test_damaged_steps_are_none(first_calls: Any) -> None:
    parts = wall_parts(recorded(regions={"step": {"count": 9, "first_calls": first_calls}}))
    assert parts is not None
    assert parts.steady is not None
    assert parts.steady.n_steps == 0


def test_what_is_written_as_json() -> None:
    told = wall_json(wall_parts(recorded(**steps(200, 100, *[10] * 62, count=72, last_ms=1000))))
    assert told is not None
    assert told["wall_ns"] == 1200 * MS
    assert {part["name"]: part["duration_ns"] for part in told["parts"]} == {
        "start": 100 * MS,
        "warm-up": 300 * MS,
        "steady": 700 * MS,
        "teardown": 100 * MS,
    }
    steady = told["steady"]
    assert (steady["steps"], steady["step_of"], steady["step_ns"]) == (70, "step", 10 * MS)
    assert steady["gpu_busy"] == {"0": pytest.approx(0.4, abs=0.001)}
