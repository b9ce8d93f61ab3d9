from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bragg import formats
from bragg.errors import BadFile
from bragg.model import MetricKind, Profile, TrackKind
from tests.support.profiles import tree_to_text

FOLDER = Path(__file__).parents[3] / "golden" / "proton"
BASE_NS = 1795262240773334489


def slices(profile: Profile) -> list[tuple[str, str, int, int]]:
    """Track, name, start and length of each slice."""
    table = profile.slices
    columns = (table.track, table.node, table.start_ns, table.duration_ns)
    rows = zip(*(column.tolist() for column in columns), strict=True)
    return [(profile.tracks.label(track), profile.tree.label(node), start, ns) for track, node, start, ns in rows]


def test_documents_of_several_streams_are_one_timeline() -> None:
    profile = formats.load(FOLDER / "kernels-3.6.chrome_trace")
    profile.check()
    assert tree_to_text(profile) == "root\n  test\n    foo 6us x2\n    a.py:3@f\n      bar 2us"
    assert slices(profile) == [
        ("GPU stream 7", "foo", 0, 2500),
        ("GPU stream 7", "foo", 10_000, 3500),
        ("GPU stream 13", "bar", 1500, 2000),
    ]


def test_streams_of_an_h200_are_two_tracks() -> None:
    profile = formats.load(FOLDER / "h200-3.6.chrome_trace")
    profile.check()
    assert [profile.tracks.label(track) for track in range(2)] == ["GPU stream 7", "GPU stream 21"]
    assert (profile.total("gpu_time"), profile.total("gpu_count")) == (16_929, 7)
    first = slices(profile)[0]
    assert (first[0], first[2], first[3]) == ("GPU stream 7", 0, 1344)


def test_scopes_ranges_of_graphs_and_kernels_have_lanes_of_their_own() -> None:
    profile = formats.load(FOLDER / "kernels-3.9.chrome_trace")
    profile.check()
    assert slices(profile) == [
        ("CPU Thread 1", "step", BASE_NS, 20_000),
        ("CPU Thread 1", "inner", BASE_NS + 1000, 5000),
        ("Graph: Stream 7", "captured", BASE_NS + 8000, 6000),
        ("GPU Stream 7", "foo", BASE_NS + 8000, 2000),
        ("GPU Stream 7", "<metric>", BASE_NS + 10_500, 500),
    ]
    kinds = [TrackKind.HOST_THREAD, TrackKind.RANGES, TrackKind.GPU_STREAM]
    assert profile.tracks.kind.tolist() == kinds


def test_arrows_lead_from_scopes_to_kernels() -> None:
    profile = formats.load(FOLDER / "kernels-3.9.chrome_trace")
    names = [row[1] for row in slices(profile)]
    flows = profile.flows
    pairs = zip(flows.source.tolist(), flows.target.tolist(), strict=True)
    assert [(names[launch], names[kernel]) for launch, kernel in pairs] == [("inner", "foo")]


def test_metrics_of_scopes_and_kernels_are_numbers_of_their_kind() -> None:
    profile = formats.load(FOLDER / "kernels-3.9.chrome_trace")
    assert (profile.total("m"), profile.total("flops8")) == (2.0, 100.0)
    assert profile.metrics["tile"].kind is MetricKind.PROPERTY
    assert (profile.total("gpu_time"), profile.total("gpu_count"), profile.total("host_time")) == (2500, 2, 20_000)


def test_metrics_of_a_repeated_scope_are_added_and_its_properties_stay(tmp_path: Path) -> None:
    arguments = {"call_stack": ["ROOT", "a"], "metrics": {"n": "2", "tile (pty)": "7"}}
    event = {"ph": "X", "cat": "metric", "name": "a: <n, 2>", "tid": 1, "dur": 1.0, "args": arguments}
    profile = load(tmp_path, [{**event, "ts": 1.0}, {**event, "ts": 5.0}])
    assert (profile.total("n"), profile.own("tile")[1]) == (4, 7)


def test_time_of_nested_scopes_is_not_counted_twice() -> None:
    profile = formats.load(FOLDER / "scopes-3.9.chrome_trace")
    outer = next(node for node in range(len(profile.tree)) if profile.tree.label(node) == "outer")
    assert profile.inclusive("host_time")[outer] == 34_461
    assert profile.metrics["lat"].kind is MetricKind.EXCLUSIVE
    assert profile.own("vec[1]").max() == 2


def test_tree_is_read_without_its_timeline() -> None:
    profile = formats.load(FOLDER / "kernels-3.9.chrome_trace", trace=False)
    assert len(profile.slices) == 0
    assert profile.durations.count.tolist() == [1, 1]


def test_trace_of_an_instrumented_kernel_counts_cycles(tmp_path: Path) -> None:
    event = {"ph": "X", "cat": "kernel_a", "name": "load", "pid": "kernel_a Core0 CTA0", "tid": "warp 0", "ts": 1.0}
    event |= {"dur": 0.5, "args": {"call_stack": ["ROOT", "kernel_a", "load"]}}
    profile = load(tmp_path, [event])
    assert profile.own("cycles").tolist() == [0, 0, 500]
    assert slices(profile) == [("kernel_a Core0 CTA0 warp 0", "load", 1000, 500)]


@pytest.mark.parametrize(
    ("events", "error"),
    [
        ([{"name": "call_stack", "call_stack": []}], "unknown format"),
        ([5], "is damaged: an event is not an object"),
        (
            [{"ph": "X", "cat": "kernel", "ts": -1, "dur": 1, "args": {"call_stack": ["ROOT", "a"]}}],
            "is not a time: -1",
        ),
        (
            [{"ph": "X", "cat": "kernel", "ts": 1, "dur": 1e30, "args": {"call_stack": ["ROOT", "a"]}}],
            "dur of an event",
        ),
    ],
)
def test_other_traces_and_damage_are_refused(events: list[Any], error: str, tmp_path: Path) -> None:
    with pytest.raises(BadFile, match=error):
        load(tmp_path, events)


@pytest.mark.parametrize("category", [[], {}, None, 5])
def test_slices_whose_category_is_no_text_are_ranges(category: Any, tmp_path: Path) -> None:
    path = {"args": {"call_stack": ["ROOT", "a"]}}
    without_path = {"ph": "X", "cat": category, "name": "b", "tid": "Graph: 1", "ts": 0, "dur": 1}
    profile = load(tmp_path, [{"ph": "X", "cat": category, "ts": 1, "dur": 1, **path}, without_path])
    assert profile.tracks.kind.tolist() == [TrackKind.RANGES]


def load(folder: Path, events: list[Any]) -> Profile:
    (folder / "file").write_text(json.dumps({"displayTimeUnit": "us", "traceEvents": events}))
    profile = formats.load(folder / "file")
    profile.check()
    return profile
