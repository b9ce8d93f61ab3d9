"""Means of power and clocks by call path, from samples of telemetry."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pytest

from bragg.analyze.derived import evaluate, list_available
from bragg.errors import UsageError
from bragg.formats.captured.counted import with_counted
from bragg.formats.limits import Limits
from bragg.grouping.regions import REGIONS, group_by_region
from bragg.model import CounterTable, Profile, SliceTable, TrackKind, TrackTable
from bragg.model.meta.telemetry import CLOCK_TRACK, POWER_TRACK, track_of_reason
from tests.support.profiles import profile_from_text
from tests.support.work import node_named

MS = 1_000_000
SAMPLE = 100 * MS
POWER, CLOCK, HELD = (0, POWER_TRACK), (0, CLOCK_TRACK), (0, track_of_reason("power"))
TREE = "root\n  torch: forward\n    matmul 200ms @0\n  torch: backward\n    copy 200ms @0"


def profile_of(
    samples: Mapping[tuple[int, str], Mapping[float, float]],
    runs: Sequence[tuple[str, int, int]],
    reasons: Sequence[int] = (0,),
    gpus: Sequence[int] = (0,),
) -> Profile:
    """A timeline of what ran from when to when, in ms, and of values at the ends of samples, in samples."""
    profile = profile_from_text(TREE)
    labels = list(samples)
    n_tracks = 1 + len(labels)
    tracks = TrackTable(
        kind=np.array([TrackKind.GPU_STREAM] + [TrackKind.COUNTER] * len(labels), np.uint8),
        process=np.ones(n_tracks, np.int32),
        device=np.array([0] + [device for device, _ in labels], np.int32),
        context=np.zeros(n_tracks, np.int64),
        stream=np.zeros(n_tracks, np.int64),
        name=["", *(label for _, label in labels)],
    )
    points = [
        (round(at * SAMPLE), row + 1, value) for row, key in enumerate(labels) for at, value in samples[key].items()
    ]
    times, rows, values = zip(*points, strict=True)
    node = [node_named(profile, name) for name, *_ in runs]
    start, stop = (np.array([run[at] for run in runs], np.int64) * MS for at in (1, 2))
    zeros = np.zeros(len(runs), np.int64)
    telemetry = {
        "devices": {str(gpu): {"clock_reasons": {"samples": 9}} if gpu in reasons else {} for gpu in gpus},
    }
    return replace(
        profile,
        meta={**profile.meta, "telemetry": telemetry},
        tracks=tracks,
        slices=SliceTable(start, stop - start, np.array(node, np.int32), zeros.astype(np.int32), zeros),
        counters=CounterTable(np.array(times), np.array(rows, np.int32), np.array(values, np.float64)),
    )


def counted(profile: Profile) -> Profile:
    return with_counted(profile, Limits(1 << 30))


def at(profile: Profile, metric: str) -> dict[str, float]:
    values = evaluate(profile, metric).values
    return {name: values[node_named(profile, name)] for name in ("matmul", "copy", "torch: forward")}


STEADY = {
    POWER: {1: 400, 2: 600, 3: 200, 4: 200},
    CLOCK: {1: 1800, 2: 1200, 3: 1500, 4: 1500},
    HELD: {2: 1, 3: 0, 4: 0},
}


def test_means_are_those_of_the_samples_that_a_path_ran_in_by_time() -> None:
    profile = counted(profile_of(STEADY, [("matmul", 50, 200), ("copy", 200, 260), ("copy", 300, 340)]))
    power = (400 * 50 + 600 * 100) / 150
    assert at(profile, "power") == pytest.approx({"matmul": power, "copy": 200, "torch: forward": power})
    assert at(profile, "sm_clock")["matmul"] == pytest.approx((1800 * 50 + 1200 * 100) / 150)
    assert at(profile, "throttled") == pytest.approx({"matmul": 200 / 3, "copy": 0, "torch: forward": 200 / 3})
    assert profile.total("energy") == pytest.approx(0.4 * 50 + 0.6 * 100 + 0.2 * 100)
    assert profile.metrics["energy"].unit == "J"
    assert {"power", "sm_clock", "throttled"} <= set(list_available(profile))


def test_what_runs_at_once_shares_the_energy_and_what_is_not_sampled_has_none() -> None:
    runs = [("matmul", 0, 200), ("copy", 100, 200), ("copy", 390, 900)]
    profile = counted(profile_of(STEADY, runs))
    energy = profile.own("energy")
    assert energy[node_named(profile, "matmul")] == pytest.approx(40 + 30)
    assert energy[node_named(profile, "copy")] == pytest.approx(30 + 2)
    assert profile.total("metered_time") == pytest.approx((200 + 10) * MS)


def test_a_pause_of_sampling_is_not_filled_with_the_sample_after_it() -> None:
    pause: dict[tuple[int, str], dict[float, float]] = {POWER: {1: 400, 2: 400, 3: 400, 9: 400}}
    profile = counted(profile_of(pause, [("matmul", 0, 900)]))
    assert profile.total("metered_time") == pytest.approx((300 + 150) * MS)


def test_what_one_of_two_gpus_does_not_report_is_left_out() -> None:
    other = {(1, POWER_TRACK): {1: 100, 2: 100}}
    profile = counted(profile_of({**STEADY, **other}, [("matmul", 0, 100)], gpus=(0, 1)))
    assert profile.total("energy") == pytest.approx(40)
    assert not {"sm_cycles", "throttled_time"} & profile.metrics.keys()


def test_clocks_are_sampled_at_other_times_than_power() -> None:
    samples = {
        POWER: {1: 400, 1.2: 500, 1.4: 500, 1.6: 500},
        CLOCK: {1.3: 1800, 2.3: 1200, 3.3: 1500},
        HELD: {2.3: 1, 3.3: 0},
    }
    profile = counted(profile_of(samples, [("matmul", 100, 130), ("copy", 200, 400)]))
    assert at(profile, "power")["matmul"] == pytest.approx(500)
    assert profile.total("energy") == pytest.approx(0.5 * 30)
    assert at(profile, "sm_clock") == pytest.approx(
        {"matmul": 1800, "copy": (1200 * 30 + 1500 * 100) / 130, "torch: forward": 1800}
    )
    assert at(profile, "throttled") == pytest.approx({"matmul": 0, "copy": 3000 / 130, "torch: forward": 0})
    assert profile.total("clocked_time") == pytest.approx((30 + 130) * MS)


def test_limits_that_the_driver_does_not_report_are_not_taken_for_none() -> None:
    profile = counted(profile_of(STEADY, [("matmul", 0, 100)], reasons=()))
    assert "throttled_time" not in profile.metrics
    with pytest.raises(UsageError, match="throttled needs telemetry") as error:
        evaluate(profile, "throttled")
    assert error.value.hint == "bragg run --telemetry --data trace"


def test_regions_have_the_power_of_what_they_ran() -> None:
    grouped = group_by_region(counted(profile_of(STEADY, [("matmul", 0, 200), ("copy", 200, 300)])))
    power = evaluate(grouped, "power").values
    assert power[1 + REGIONS.index("forward")] == pytest.approx(500)
    assert power[1 + REGIONS.index("backward")] == pytest.approx(200)
    assert power[0] == pytest.approx(400)  # a step
    assert np.isnan(power[1 + REGIONS.index("data")])
