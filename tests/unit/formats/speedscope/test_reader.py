from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bragg import formats
from bragg.errors import BadFile
from bragg.model import FrameKind, Profile
from tests.support.profiles import profile_from_text, tree_to_text
from tests.support.traces import trace_from_text

FRAMES = [{"name": "main", "file": "a.py", "line": 3}, {"name": "work", "file": "b.c", "line": 9}, {"name": "idle"}]


def load(folder: Path, *profiles: dict[str, Any], **more: Any) -> Profile:
    (folder / "file").write_text(json.dumps({"shared": {"frames": FRAMES}, "profiles": profiles, **more}))
    profile = formats.load(folder / "file")
    profile.check()
    return profile


def event(kind: str, frame: int, at: float) -> dict[str, Any]:
    return {"type": kind, "frame": frame, "at": at}


def test_events_are_slices_with_what_they_enclose(tmp_path: Path) -> None:
    events = [
        event("O", 0, 1),
        event("O", 1, 2),
        event("C", 1, 4),
        event("O", 2, 4),
        event("C", 2, 5),
        event("C", 0, 9),
    ]
    profile = load(
        tmp_path, {"type": "evented", "name": "main", "unit": "milliseconds", "startValue": 0, "events": events}
    )
    assert tree_to_text(profile) == "root\n  a.py:3@main host=5ms\n    b.c:9@work host=2ms\n    idle host=1ms"
    slices = profile.slices
    assert slices.start_ns.tolist() == [1_000_000, 2_000_000, 4_000_000]
    assert slices.duration_ns.tolist() == [8_000_000, 2_000_000, 1_000_000]
    assert profile.tracks.label(0) == "main"


def test_samples_of_bytes_or_counts_are_a_metric_without_a_timeline(tmp_path: Path) -> None:
    part = {
        "type": "sampled",
        "name": "heap",
        "unit": "bytes",
        "startValue": 0,
        "samples": [[0], [0, 1]],
        "weights": [5, 7],
    }
    profile = load(tmp_path, part)
    assert (profile.total("bytes"), profile.metrics["bytes"].unit, len(profile.slices)) == (12, "B", 0)


def test_own_flame_graphs_come_back_by_their_names(tmp_path: Path) -> None:
    text = "root\n  step\n    matmul 12us x3\n    relu 4us"
    formats.export(profile_from_text(text), "speedscope", tmp_path / "own.json")
    profile = formats.load(tmp_path / "own.json")
    assert tree_to_text(profile) == text
    assert [profile.tree.frames.name[row] for row in np.flatnonzero(profile.tree.frames.kind == FrameKind.KERNEL)] == [
        "matmul",
        "relu",
    ]


def test_own_timelines_come_back_and_are_not_counted_twice(tmp_path: Path) -> None:
    formats.export(trace_from_text("stream 7\n  10-20 a\n  30-35 b"), "speedscope", tmp_path / "own.json")
    profile = formats.load(tmp_path / "own.json")
    assert profile.total("gpu_time") == 15
    assert (profile.slices.start_ns.tolist(), profile.slices.duration_ns.tolist()) == ([0, 20], [10, 5])
    assert profile.tracks.label(0) == "stream 7"


@pytest.mark.parametrize(
    ("part", "error"),
    [
        ({"type": "sampled", "unit": "none", "samples": [[7]], "weights": [1]}, "there is no frame 7"),
        ({"type": "sampled", "unit": "none", "samples": [[0]], "weights": []}, "1 samples have 0 weights"),
        ({"type": "sampled", "unit": "none", "samples": [[0]], "weights": [-1]}, "-1 is not a weight or time"),
        ({"type": "sampled", "unit": "parsec", "samples": [], "weights": []}, "unit 'parsec' is unknown"),
        ({"type": "evented", "unit": "none", "events": [event("C", 0, 1)]}, "closes and is not the innermost"),
        ({"type": "evented", "unit": "none", "events": [event("O", 0, 1)]}, "1 frames do not close"),
        ({"type": "evented", "unit": "none", "events": [event("O", 0, 2), event("C", 0, 1)]}, "follows one at 2"),
    ],
)
def test_damage_is_told(part: dict[str, Any], error: str, tmp_path: Path) -> None:
    with pytest.raises(BadFile, match=error):
        load(tmp_path, part)
