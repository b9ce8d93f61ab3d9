"""What is said of the wall time of real programs, and what their timelines say."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from bragg import formats
from bragg.analyze.wall.parts import wall_parts
from bragg.analyze.wall.step_times import step_times
from bragg.analyze.wall.wall_time import Steady, WallParts
from bragg.model import Profile, SliceTable
from bragg.views.text.wall_line import wall_line
from tests.support.recordings import RECORDINGS, SAMPLE, busy_ns, curve, gpu_work

PROFILES = [*RECORDINGS, SAMPLE]
STEPS = {
    "h100-compiled_encoder": (57, "forward"),
    "h100-flax_nnx": (199, "jit(train_step)"),
    "h100-llama_generate": (62, "forward"),
    "h100-timm_resnet50": (19, "step"),
    "h100-trainer_gpt2": (39, "step"),
    "sample-h100": (6, "step"),
}


@pytest.fixture(params=PROFILES, ids=lambda path: path.stem)
def recording(request: pytest.FixtureRequest) -> tuple[Path, Profile]:
    return request.param, formats.load(request.param)


def parts_of(profile: Profile) -> tuple[WallParts, Steady]:
    parts = wall_parts(profile)
    assert parts is not None
    assert parts.steady is not None
    return parts, parts.steady


def without_timeline(profile: Profile) -> Profile:
    """As it would be recorded by `--data tree`, without regions."""
    meta = {key: value for key, value in profile.meta.items() if key != "regions"}
    return replace(profile, slices=SliceTable.empty(), meta={**meta, "gpu_activity": curve(profile)})


def test_the_parts_add_up_to_the_wall_time(recording: tuple[Path, Profile]) -> None:
    parts, _ = parts_of(recording[1])
    durations = [lasts_ns for _, lasts_ns in parts.durations()]
    assert sum(durations) == parts.wall_ns == recording[1].meta["stopped_ns"] - recording[1].meta["started_ns"]
    assert min(durations) >= 0


def test_the_steady_state_has_the_steps_that_are_alike(recording: tuple[Path, Profile]) -> None:
    steady = parts_of(recording[1])[1]
    assert (steady.n_steps, steady.step_of) == STEPS[recording[0].stem]
    assert steady.n_steps * steady.step_ns == pytest.approx(steady.duration_ns)


def test_the_gpu_is_as_busy_as_the_timeline_shows(recording: tuple[Path, Profile]) -> None:
    profile, steady = recording[1], parts_of(recording[1])[1]
    truth = busy_ns(profile, steady.begins_ns, steady.ends_ns) / steady.duration_ns
    assert steady.busy == {0: pytest.approx(truth, abs=1e-6)}
    begun = sum(steady.begins_ns < begins <= steady.ends_ns for begins, _ in gpu_work(profile))
    assert abs(steady.n_launches - begun) <= 2


def test_the_warm_up_launches_less_than_the_steady_state(recording: tuple[Path, Profile]) -> None:
    profile, (parts, steady) = recording[1], parts_of(recording[1])
    begun = sum(parts.worked_ns < begins <= steady.begins_ns for begins, _ in gpu_work(profile))
    assert begun / (steady.begins_ns - parts.worked_ns) < 0.5 * steady.n_launches / steady.duration_ns


def test_without_steps_and_timeline_the_same_is_said(recording: tuple[Path, Profile]) -> None:
    steady, found = parts_of(recording[1])[1], parts_of(without_timeline(recording[1]))[1]
    bin_ns = curve(recording[1])["0"]["bin_ns"]
    assert found.n_steps in (0, steady.n_steps - 1)  # turns of the loop, where the text is known: whole ones
    assert found.step_ns in (0, pytest.approx(steady.step_ns, rel=0.05))
    least_ns = found.begins_ns - found.step_ns
    assert least_ns == pytest.approx(steady.begins_ns, abs=0.06 * steady.duration_ns + 2 * bin_ns)
    assert found.ends_ns == pytest.approx(steady.ends_ns, abs=0.02 * steady.duration_ns + 2 * bin_ns)
    assert found.busy[0] == pytest.approx(steady.busy[0], abs=0.05)


def test_recordings_that_keep_neither_steps_nor_curve_tell_no_steady_state(recording: tuple[Path, Profile]) -> None:
    kept = {key: value for key, value in recording[1].meta.items() if key not in ("regions", "gpu_activity")}
    profile = replace(without_timeline(recording[1]), meta=kept)
    parts = wall_parts(profile)
    assert parts is not None
    assert parts.steady is None
    assert [name for name, _ in parts.durations()] == ["start", "GPU work", "teardown"]


def test_the_sample_says_what_a_newcomer_must_know() -> None:
    line = wall_line(wall_parts(formats.load(SAMPLE)))
    assert line == (
        "start 13.3 s | warm-up 1.78 s | steady 101 ms (6 steps of 16.8 ms, GPU busy 64 %) | teardown 16.9 ms"
    )


def test_steps_are_told_by_what_the_recorder_kept_of_the_first_ones() -> None:
    profile = formats.load(next(path for path in RECORDINGS if "trainer" in path.stem))
    steps = step_times(profile)
    assert steps is not None
    assert steps.began_ns is not None
    kept = {
        "began_ns": steps.began_ns,
        "ends_after_ns": (steps.ends_ns - steps.began_ns).tolist()[:20],
        "last_ns": steps.last_ns,
    }
    meta = {
        **without_timeline(profile).meta,
        "regions": {"step": {"count": steps.count, "first_calls": kept}, "forward": {}},
    }
    found = parts_of(replace(without_timeline(profile), meta=meta))[1]
    assert found == replace(parts_of(profile)[1], busy=found.busy, n_launches=found.n_launches)
    assert found.busy[0] == pytest.approx(parts_of(profile)[1].busy[0], abs=0.002)


def test_a_trainer_needs_no_option_for_its_steps() -> None:
    trainer = next(path for path in RECORDINGS if "trainer" in path.stem)
    line = wall_line(wall_parts(formats.load(trainer.parent / "default" / trainer.name)))
    assert line == (
        "start 17.2 s | warm-up 2.26 s | steady 1.08 s (39 steps of 27.6 ms, GPU busy 16 %) | teardown 17.4 ms"
    )
