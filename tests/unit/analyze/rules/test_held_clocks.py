"""Clocks that limits hold down, from sums in META and from samples within the steady state."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.engine import analysis
from bragg.analyze.wall.wall_time import Steady
from bragg.model import CounterTable, Finding, Profile, TrackKind
from bragg.model.telemetry import IDLE_TRACK, track_of_reason
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


def test_the_steady_state_alone_counts_where_a_timeline_has_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    profile = profile_with(power=90)
    tracks = profile.tracks
    names = ["SM clock (MHz)", track_of_reason("power"), IDLE_TRACK]
    rows = len(tracks)
    time_ns = np.tile(np.arange(100, dtype=np.int64), 3)
    power = np.where(np.arange(100) < 40, 1.0, 0.0)  # before the steady state alone
    idle = np.where(np.arange(100) >= 90, 1.0, 0.0)
    added = replace(
        tracks,
        **{
            name: np.concatenate(
                [getattr(tracks, name), np.full(3, TrackKind.COUNTER if name == "kind" else 0)]
            ).astype(getattr(tracks, name).dtype)
            if isinstance(getattr(tracks, name), np.ndarray)
            else [*getattr(tracks, name), *(names if name == "name" else [""] * 3)]
            for name in tracks.columns()
        },
    )
    counters = CounterTable(
        time_ns,
        np.repeat(np.arange(rows, rows + 3), 100).astype(np.int32),
        np.concatenate([np.full(100, 1500.0), power, idle]),
    )
    evidence = Evidence(replace(profile, tracks=added, counters=counters))
    monkeypatch.setattr(Evidence, "steady", property(lambda self: Steady(50, 100)))
    assert analysis(evidence, [RULE]).findings == []
    monkeypatch.setattr(Evidence, "steady", property(lambda self: Steady(20, 100)))
    (finding,) = analysis(evidence, [RULE]).findings
    assert "in 29 % of the steady state" in finding.message  # 20 of the 70 samples with work
