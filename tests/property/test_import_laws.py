"""Laws of timelines that are read: whatever they hold, the tree adds up to what the slices did."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from bragg import formats
from bragg.model import Profile, TrackKind

SPANS = st.lists(
    st.tuples(st.integers(0, 60), st.integers(0, 40), st.sampled_from("abc"), st.integers(1, 2)), min_size=1
)
LAUNCHES = st.lists(st.tuples(st.integers(0, 60), st.integers(1, 40), st.sampled_from("kl"), st.integers(0, 4)))


def load(document: Any) -> Profile:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        path.write_text(json.dumps(document))
        return formats.load(path)


def event(start: int, length: int, name: str, tid: int, **more: Any) -> dict[str, Any]:
    return {"ph": "X", "name": name, "pid": 1, "tid": tid, "ts": start * 10, "dur": length * 10, **more}


@given(SPANS, LAUNCHES)
def test_trees_of_timelines_add_up(spans: list[Any], launches: list[Any]) -> None:
    host = [event(start, length, name, tid) for start, length, name, tid in spans]
    gpu = [
        event(start, length, name, 7, cat="kernel", args={"device": 0, "correlation": correlation})
        for start, length, name, correlation in launches
    ]
    for number, span in enumerate(host[:3], start=1):
        span["args"] = {"correlation": number}
    profile = load({"traceEvents": [*host, *gpu]})
    profile.check()
    on_gpu = profile.tracks.kind[profile.slices.track] == TrackKind.GPU_STREAM
    assert len(profile.slices) == len(host) + len(gpu)
    if gpu:
        assert profile.total("gpu_time") == int(profile.slices.duration_ns[on_gpu].sum())
        assert profile.total("gpu_count") == len(gpu)
    assert int(profile.own("host_count").sum()) == len(host)
    longest_ns = profile.slices.duration_ns[~on_gpu].max()
    assert longest_ns <= profile.total("host_time") <= profile.slices.duration_ns[~on_gpu].sum()


@given(SPANS)
def test_a_slice_is_below_one_that_encloses_it_or_below_none(spans: list[Any]) -> None:
    profile = load([event(start, length, name, tid) for start, length, name, tid in spans])
    slices, tree = profile.slices, profile.tree
    end_ns = slices.start_ns + slices.duration_ns
    for row in range(len(slices)):
        above = tree.parent[slices.node[row]]
        enclosing = (slices.node == above) & (slices.track == slices.track[row])
        enclosing &= (slices.start_ns <= slices.start_ns[row]) & (end_ns + 1000 >= end_ns[row])
        assert above == 0 or np.any(enclosing)
