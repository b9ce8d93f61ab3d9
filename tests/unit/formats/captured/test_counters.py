"""Counters, and tracks of units of a device, whose times are those of its clock."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from bragg.formats import bragg, capture
from bragg.formats.captured.chunks import ChunkType
from bragg.formats.captured.counters import Clock
from bragg.formats.chrome import trace as chrome
from bragg.formats.perfetto import trace as perfetto
from bragg.model import FrameKind, Profile, TrackKind
from tests.support.captures import NONE, CaptureBuilder, small_capture

# Strings and tracks of `small_capture` that are before ours.
_N_STRINGS, _N_TRACKS = 6, 2
_POWER, _WATT, _WARP = _N_STRINGS, _N_STRINGS + 1, _N_STRINGS + 2
_CLOCK = 9


def read(builder: CaptureBuilder, folder: Path) -> Profile:
    profile = capture.read(builder.write(folder / "run.part"))
    profile.check()
    return profile


def with_counters() -> CaptureBuilder:
    builder = small_capture().strings("power", "W")
    builder.rows(ChunkType.TRACKS, (TrackKind.COUNTER, 0, _WATT, 0, _POWER))
    builder.rows(ChunkType.COUNTERS, (1500, 312.5, _N_TRACKS), (1200, 70.0, _N_TRACKS))
    return builder


def with_units(*readings: tuple[int, int, int]) -> CaptureBuilder:
    builder = small_capture().strings("power", "W", "SM 3 warp 1")
    builder.rows(ChunkType.TRACKS, (TrackKind.DEVICE_UNIT, 0, _CLOCK, 0, _WARP))
    builder.rows(ChunkType.SLICES, (5_000, 200, 3, _N_TRACKS, 0))
    if readings:
        builder.rows(ChunkType.CLOCKS, *readings)
    return builder


def test_counters_are_values_over_time_on_a_track_with_their_unit(tmp_path: Path) -> None:
    profile = read(with_counters(), tmp_path)
    assert profile.counters.time_ns.tolist() == [1200, 1500]
    assert profile.counters.value.tolist() == [70.0, 312.5]
    assert profile.counters.track.tolist() == [_N_TRACKS] * 2
    assert profile.tracks.label(_N_TRACKS) == "power (W)"
    assert (profile.tracks.device[_N_TRACKS], profile.tracks.context[_N_TRACKS]) == (0, 0)


def test_counters_are_kept_in_the_file_and_exported(tmp_path: Path) -> None:
    profile = read(with_counters(), tmp_path)
    bragg.write(profile, tmp_path / "run.bragg")
    kept = bragg.read(tmp_path / "run.bragg")
    assert kept.counters.value.tolist() == [70.0, 312.5]
    chrome.write(kept, tmp_path / "run.json")
    events = [each for each in json.loads((tmp_path / "run.json").read_text())["traceEvents"] if each["ph"] == "C"]
    assert [(each["name"], each["args"]["value"]) for each in events] == [("power (W)", 70.0), ("power (W)", 312.5)]
    perfetto.write(kept, tmp_path / "run.pftrace")
    assert b"power (W)" in (tmp_path / "run.pftrace").read_bytes()


def test_a_capture_of_counters_alone_is_a_measurement(tmp_path: Path) -> None:
    builder = CaptureBuilder().meta(pid=42).strings("root", "power", "W")
    builder.rows(ChunkType.FRAMES, (FrameKind.ROOT, 0, NONE, 0, NONE)).rows(ChunkType.NODES, (NONE, 0))
    builder.rows(ChunkType.TRACKS, (TrackKind.COUNTER, 0, 2, 0, 1))
    builder.rows(ChunkType.COUNTERS, (1500, 312.5, 0))
    assert read(builder, tmp_path).counters.value.tolist() == [312.5]


def test_counters_of_tracks_that_are_lost_or_none_are_left_out(tmp_path: Path) -> None:
    builder = with_counters().rows(ChunkType.COUNTERS, (1600, 1.0, 0), (1700, 2.0, 77), (1800, float("nan"), _N_TRACKS))
    assert read(builder, tmp_path).counters.value.tolist() == [70.0, 312.5]


def test_slices_of_a_unit_are_at_the_profiles_time(tmp_path: Path) -> None:
    """Two readings of a clock of 2 GHz: a tick is half a nanosecond."""
    profile = read(with_units((_CLOCK, 4_000, 1_000), (_CLOCK, 6_000, 2_000)), tmp_path)
    on_unit = profile.slices.take(profile.slices.track == _N_TRACKS)
    assert (on_unit.start_ns.tolist(), on_unit.duration_ns.tolist()) == ([1_500], [100])
    assert profile.tracks.label(_N_TRACKS) == "SM 3 warp 1"
    assert "slices_without_clock" not in profile.meta["capture"]


def test_slices_of_a_clock_that_was_never_read_are_counted_instead_of_shown(tmp_path: Path) -> None:
    profile = read(with_units(), tmp_path)
    assert not (profile.slices.track == _N_TRACKS).any()
    assert profile.meta["capture"]["slices_without_clock"] == 1


def test_a_clock_goes_on_beyond_its_readings_and_keeps_the_last_digit_of_times() -> None:
    day_ns = 1_700_000_000_000_000_000
    clock = Clock(np.array([1_000, 2_000, 4_000]), np.array([day_ns, day_ns + 500, day_ns + 2_500]))
    ticks = np.array([0, 1_001, 1_999, 2_000, 3_001, 5_001])
    assert (clock.to_ns(ticks) - day_ns).tolist() == [-500, 0, 500, 500, 1_501, 3_501]


def test_a_clock_that_was_read_once_has_ticks_of_a_nanosecond() -> None:
    assert Clock(np.array([7]), np.array([1_000])).to_ns(np.array([5, 9])).tolist() == [998, 1_002]


def test_readings_that_go_back_are_not_used(tmp_path: Path) -> None:
    readings = ((_CLOCK, 4_000, 1_000), (_CLOCK, 3_000, 9_000), (_CLOCK, 6_000, 2_000))
    profile = read(with_units(*readings), tmp_path)
    assert profile.slices.start_ns[profile.slices.track == _N_TRACKS].tolist() == [1_500]
