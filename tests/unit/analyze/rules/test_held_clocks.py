"""Clocks that limits hold down, from sums in META and from samples within the steady state."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.engine import analysis
from bragg.analyze.steady_telemetry import steady_telemetry
from bragg.analyze.wall.wall_time import Steady
from bragg.model import CounterTable, Finding, Profile, TrackKind, TrackTable
from bragg.model.meta.telemetry import CLOCK_TRACK, IDLE_TRACK, POWER_TRACK, track_of_reason
from bragg.model.table import FloatArray
from tests.support.profiles import profile_from_text

RULE = "held-clocks"


def profile_with(**reasons: int) -> Profile:
    clock = {"samples": 100, "mean": 1410.0, "least": 1300.0, "most": 1980.0}
    device = {"source": {"power_is": "instant"}, "sm_clock_mhz": clock, "clock_reasons": {"samples": 100, **reasons}}
    profile = profile_from_text("root\n  matmul 12us")
    return replace(profile, meta={**profile.meta, "telemetry": {"devices": {"0": device}}})


def found_in(profile: Profile) -> list[Finding]:
    return analysis(Evidence(profile), [RULE]).findings


def test_clocks_held_by_power_are_found() -> None:
    (finding,) = found_in(profile_with(power=40))
    assert finding.message == (
        "the clocks of GPU 0 were held by power in 40 % of the time in which it had work: "
        "SM clock 1,410 MHz mean, 1,980 MHz at most"
    )
    assert finding.gain is None  # nobody measured what higher clocks would save
    assert [(each.name, each.value) for each in finding.evidence] == [
        ("held by power", 0.4),
        ("samples", 100),
        ("mean SM clock", 1410.0),
    ]


@pytest.mark.parametrize(("reason", "hint"), [("thermal", "cooling"), ("hardware", "checked"), ("power", "types")])
def test_each_limit_has_its_remedy(reason: str, hint: str) -> None:
    (finding,) = found_in(profile_with(**{reason: 50}))
    assert hint in finding.hint


def test_the_time_in_which_a_gpu_idles_is_left_out() -> None:
    (finding,) = found_in(profile_with(power=20, idle=60))
    assert "50 %" in finding.message


@pytest.mark.parametrize(
    "reasons", [{}, {"power": 9}, {"application_clocks": 100}, {"idle": 100}, {"idle": 95, "power": 5}]
)
def test_other_clocks_are_fine(reasons: dict[str, int]) -> None:
    assert found_in(profile_with(**reasons)) == []


def test_without_telemetry_the_option_is_named() -> None:
    skipped = analysis(Evidence(profile_from_text("root\n  matmul 12us")), [RULE]).skipped
    assert skipped[RULE].option == "--telemetry"


def sampled(profile: Profile, values: dict[str, FloatArray]) -> Profile:
    """A profile with samples at 0, 1, 2… ns on tracks of the first GPU."""
    before, count = len(profile.tracks), len(values)
    empty = np.zeros(count, np.int32)
    added = TrackTable(
        kind=np.full(count, TrackKind.COUNTER, np.uint8),
        process=empty,
        device=empty,
        context=empty,
        stream=np.zeros(count, np.uint32),
        name=[*values],
        rank=empty,
        host=[""] * count,
    )
    parts = [
        CounterTable(np.arange(len(value), dtype=np.int64), np.full(len(value), before + row, np.int32), value)
        for row, value in enumerate(values.values())
    ]
    tracks = profile.tracks.concatenate([profile.tracks, added])
    return replace(profile, tracks=tracks, counters=CounterTable.concatenate(parts))


SAMPLE = np.arange(100)
SAMPLES = {
    POWER_TRACK: np.where(SAMPLE < 50, 100.0, 300.0),
    CLOCK_TRACK: np.full(100, 1500.0),
    track_of_reason("power"): np.where(SAMPLE < 40, 1.0, 0.0),
    IDLE_TRACK: np.where(SAMPLE >= 90, 1.0, 0.0),
}


def test_the_steady_state_alone_counts_where_a_timeline_has_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    evidence = Evidence(sampled(profile_with(power=90), SAMPLES))
    monkeypatch.setattr(Evidence, "steady", property(lambda self: Steady(50, 100)))
    assert analysis(evidence, [RULE]).findings == []
    monkeypatch.setattr(Evidence, "steady", property(lambda self: Steady(20, 100)))
    (finding,) = analysis(evidence, [RULE]).findings
    # 20 of the 70 samples with work; the clock of the recording is 1,410 MHz.
    assert "in 29 % of the steady state: SM clock 1,500 MHz mean, 1,980 MHz at most in the recording" in finding.message
    assert finding.evidence[-1].value == 1500.0


def test_a_gpu_is_as_busy_as_samples_of_its_clock_say_however_many_there_are_of_power() -> None:
    samples = {**SAMPLES, POWER_TRACK: np.full(500, 300.0)}
    (gpu,) = steady_telemetry(sampled(profile_with(), samples), Steady(0, 500))
    assert (gpu.samples, gpu.busy_samples, gpu.held) == (500, 90, {"power": pytest.approx(40 / 90)})


def test_clocks_of_a_gpu_that_decides_nothing_are_fine() -> None:
    profile = profile_with(power=40)
    of_recording = {"gpu_first_ns": 0, "gpu_last_ns": 100, "gpu_busy_ns": {"0": 40, "1": 90}}
    assert found_in(replace(profile, meta={**profile.meta, **of_recording})) == []


def test_a_step_of_the_steady_state_has_its_energy() -> None:
    steady = Steady(25, 75, n_steps=10, step_of="step")
    (gpu,) = steady_telemetry(sampled(profile_with(), SAMPLES), steady)
    assert (gpu.device, gpu.samples, gpu.power_w, gpu.sm_clock_mhz) == (0, 50, 200.0, 1500.0)
    assert gpu.step_j == pytest.approx(200 * 5e-9)
    assert gpu.held == {"power": pytest.approx(15 / 50)}


def test_without_steps_or_power_there_is_no_energy_of_a_step() -> None:
    (gpu,) = steady_telemetry(sampled(profile_with(), SAMPLES), Steady(25, 75))
    assert gpu.step_j is None
    (gpu,) = steady_telemetry(sampled(profile_with(), {CLOCK_TRACK: SAMPLES[CLOCK_TRACK]}), Steady(0, 9, n_steps=3))
    assert (gpu.power_w, gpu.step_j, gpu.samples) == (None, None, 9)


@pytest.mark.parametrize("steady", [None, Steady(1000, 2000, n_steps=2)])
def test_without_samples_of_a_steady_state_nothing_is_told(steady: Steady | None) -> None:
    assert steady_telemetry(sampled(profile_with(), SAMPLES), steady) == []
