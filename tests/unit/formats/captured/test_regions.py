from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bragg.formats import capture
from bragg.model import Profile, TrackKind
from bragg.record.inside.region_spans import RegionSpans
from tests.support.captures import small_capture

SPANS = {
    "names": ["step", "forward"],
    "region": [1, 0],
    "start_ns": [1100, -100],
    "duration_ns": [500, 800],
    "left_out": 0,
}


def read(folder: Path, told: Any) -> Profile:
    profile = capture.read(small_capture().meta(region_spans=told).write(folder / "run.part"))
    profile.check()
    return profile


def slices_of(profile: Profile, track: int) -> list[tuple[str, int, int]]:
    slices = profile.slices.take(profile.slices.track == track)
    names = map(profile.tree.label, slices.node.tolist())
    return list(zip(names, slices.start_ns.tolist(), slices.duration_ns.tolist(), strict=True))


def test_steps_and_regions_are_slices_of_a_track_of_their_own(tmp_path: Path) -> None:
    profile = read(tmp_path, SPANS)
    assert [profile.tracks.label(track) for track in range(3)] == ["main", "GPU 0 stream 13", "training steps"]
    assert profile.tracks.kind[2] == TrackKind.RANGES
    assert slices_of(profile, 2) == [("step", 1000, 800), ("forward", 1100, 500)]
    assert "region_spans" not in profile.meta
    assert "region_spans_left_out" not in profile.meta
    assert (profile.total("host_time"), profile.total("gpu_time")) == (900, 300)


def test_what_the_recorder_tells_is_what_is_read(tmp_path: Path) -> None:
    spans = RegionSpans(("step", "forward"))
    spans.add("forward", 5, 6)  # no timeline
    spans.begin()
    for name, start_ns, end_ns in (("forward", 1, 9), ("forward", 1100, 1600), ("step", 1000, 1800), ("step", 7, 5)):
        spans.add(name, start_ns, end_ns)
    told = spans.since(1)
    assert slices_of(read(tmp_path, told), 2) == [("step", 7, 0), ("step", 1000, 800), ("forward", 1100, 500)]
    spans.end()
    assert (len(spans), spans.since(0)) == (0, {})


def test_spans_beyond_the_limit_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bragg.record.inside.region_spans._MAX_SPANS", 1)
    spans = RegionSpans(("step",))
    spans.begin()
    for start_ns in (10, 20, 30):
        spans.add("step", start_ns, start_ns + 5)
    profile = read(tmp_path, spans.since(0))
    assert slices_of(profile, 2) == [("step", 10, 5)]
    assert profile.meta["region_spans_left_out"] == 2


@pytest.mark.parametrize(
    "changed",
    [
        {"region": [2, 0]},
        {"region": [-1, 0]},
        {"region": [True, 0]},
        {"start_ns": [1100]},
        {"start_ns": [-5, 0]},
        {"start_ns": [1 << 63, 0]},
        {"duration_ns": [(1 << 63) - 1, 0]},
        {"duration_ns": ["1", 0]},
        {"names": "no"},
        {"region": [], "start_ns": [], "duration_ns": []},
    ],
)
def test_spans_that_make_no_sense_are_left_out(tmp_path: Path, changed: dict[str, Any]) -> None:
    assert len(read(tmp_path, {**SPANS, **changed}).tracks) == 2
    assert len(read(tmp_path, [1]).tracks) == 2
