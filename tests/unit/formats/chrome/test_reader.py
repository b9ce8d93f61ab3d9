from __future__ import annotations

import gzip
import json
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from bragg import formats
from bragg.errors import BadFile
from bragg.model import Profile, TrackKind
from tests.support.profiles import tree_to_text
from tests.support.traces import trace_from_text

GOLDEN_TRACE = Path(__file__).parents[3] / "golden" / "exports" / "trace.txt"


def slice_event(cat: str, name: str, ts: float, dur: float, tid: int = 1, pid: int = 1, **args: Any) -> dict[str, Any]:
    return {"ph": "X", "cat": cat, "name": name, "ts": ts, "dur": dur, "tid": tid, "pid": pid, "args": args}


KERNEL = {"device": 0, "stream": 7, "grid": [4, 2, 1], "block": [128, 1, 1], "registers per thread": 64}
KINETO = [
    slice_event("user_annotation", "forward", 0, 100),
    slice_event("python_function", "train.py(4): step", 1, 98),
    slice_event("python_function", "<built-in method mm of type object at 0x7f50>", 2, 90),
    slice_event("cpu_op", "aten::mm", 10, 50, **{"External id": 7}),
    slice_event("cuda_runtime", "cudaLaunchKernel", 20, 5, correlation=99),
    slice_event("kernel", "sgemm", 130, 12.5, 7, 0, correlation=99, **KERNEL),
    slice_event("gpu_memcpy", "Memcpy HtoD", 160, 2, 7, 0, correlation=100, device=0, bytes=4096, **{"External id": 7}),
    slice_event("kernel", "orphan", 170, 2, 7, 0, correlation=101, **KERNEL),
    slice_event("gpu_user_annotation", "forward", 130, 32, 7, 0),
]


def load(folder: Path, document: Any) -> Profile:
    (folder / "trace.json").write_text(json.dumps(document))
    profile = formats.load(folder / "trace.json")
    profile.check()
    return profile


def test_kernels_are_below_the_operator_that_launched_them(tmp_path: Path) -> None:
    profile = load(tmp_path, {"schemaVersion": 1, "traceEvents": KINETO})
    assert tree_to_text(profile).splitlines() == [
        "root",
        "  forward host=2us hostx1",
        "    train.py:4@step host=8us hostx1",
        "      <built-in method mm of type> host=40us hostx1",
        "        aten::mm host=45us hostx1",
        "          cudaLaunchKernel host=5us hostx1",
        "          sgemm 12500ns",
        "          Memcpy HtoD 2us bytes=4096",
        "  <launch not recorded>",
        "    orphan 2us",
        "  forward",
    ]


def test_launch_configurations_devices_and_idle_time_are_read(tmp_path: Path) -> None:
    device = {"id": 0, "name": "NVIDIA H100", "computeMajor": 9, "computeMinor": 0, "numSms": 132}
    profile = load(tmp_path, {"schemaVersion": 1, "deviceProperties": [device], "traceEvents": KINETO})
    kernels = profile.kernels
    assert (kernels.registers.tolist(), kernels.grid_y.tolist(), kernels.block_x.tolist()) == (
        [64] * 2,
        [2] * 2,
        [128] * 2,
    )
    assert profile.meta["devices"] == [{"name": "NVIDIA H100", "num_sms": 132, "arch": "90"}]
    assert profile.meta["gpu_busy_ns"] == {"0": 16_500}
    assert profile.meta["gpu_last_ns"] - profile.meta["gpu_first_ns"] == 42_000


def test_streams_of_jax_are_gpu_work_and_its_other_lanes_are_ranges(tmp_path: Path) -> None:
    def name(kind: str, pid: int, tid: int, name: str) -> dict[str, Any]:
        return {"ph": "M", "name": kind, "pid": pid, "tid": tid, "args": {"name": name}}

    def event(name: str, tid: int, ts: float, dur: float, pid: int, **args: Any) -> dict[str, Any]:
        return {"ph": "X", "name": name, "pid": pid, "tid": tid, "ts": ts, "dur": dur, "args": args}

    events = [
        name("process_name", 701, 0, "/host:CPU"),
        name("process_name", 1, 0, "/device:GPU:0"),
        name("thread_name", 1, 14, "Stream #14(Compute)"),
        name("thread_name", 1, 15, "XLA Modules"),
        event("$train.py:12 step", 5, 0, 50, 701),
        event("cuLaunchKernel", 5, 10, 2, 701, correlation_id="31"),
        event("loop_fusion", 14, 60, 4, 1, correlation_id=31),
        event("jit_step", 15, 60, 4, 1),
    ]
    profile = load(tmp_path, {"displayTimeUnit": "ns", "traceEvents": events})
    assert tree_to_text(profile).splitlines()[1:] == [
        "  train.py:12@step host=48us hostx1",
        "    cuLaunchKernel host=2us hostx1",
        "    loop_fusion 4us",
        "  jit_step",
    ]
    assert sorted(profile.tracks.kind.tolist()) == [TrackKind.HOST_THREAD, TrackKind.GPU_STREAM, TrackKind.RANGES]


def test_events_that_overlap_without_nesting_are_siblings(tmp_path: Path) -> None:
    profile = load(
        tmp_path, [slice_event("", "a", 0, 100), slice_event("", "b", 50, 100), slice_event("", "c", 60, 10)]
    )
    assert tree_to_text(profile) == "root\n  a host=100us hostx1\n  b host=90us hostx1\n    c host=10us hostx1"


def test_a_list_that_was_not_closed_and_slices_that_did_not_end_are_read(tmp_path: Path) -> None:
    begun = {"ph": "B", "name": "a", "ts": 1, "pid": 1, "tid": 1}
    text = json.dumps([begun, {**begun, "name": "b", "ts": 2}, {"ph": "E", "ts": 5, "pid": 1, "tid": 1}])
    (tmp_path / "trace.json").write_text(text[:-1] + ",\n")
    profile = formats.load(tmp_path / "trace.json")
    assert tree_to_text(profile) == "root\n  a host=1us hostx1\n    b host=3us hostx1"


def test_counters_are_tracks(tmp_path: Path) -> None:
    events = [{"ph": "C", "name": "memory", "pid": 1, "ts": 3, "args": {"value": 5, "peak": 7, "unit": "B"}}]
    profile = load(tmp_path, events)
    assert [profile.tracks.label(track) for track in range(2)] == ["memory", "memory peak"]
    assert (profile.counters.time_ns.tolist(), profile.counters.value.tolist()) == ([3000, 3000], [5.0, 7.0])


def test_events_without_a_place_in_a_profile_are_counted(tmp_path: Path) -> None:
    profile = load(tmp_path, [slice_event("", "a", 0, 1), {"ph": "i", "name": "mark", "ts": 0}, {"ph": "E", "ts": 1}])
    assert profile.meta["events_left_out"] == {"i": 1, "E": 1}


def test_own_trace_comes_back_as_it_was(tmp_path: Path) -> None:
    profile = trace_from_text(GOLDEN_TRACE.read_text())
    formats.export(profile, "chrome", tmp_path / "own.json")
    again = formats.load(tmp_path / "own.json")
    assert again.total("gpu_time") == profile.total("gpu_time")
    assert sorted(rows(again)) == sorted(rows(profile))
    assert sorted(arrows(again)) == sorted(arrows(profile))


def rows(profile: Profile) -> list[tuple[Any, ...]]:
    tree, tracks, slices = profile.tree, profile.tracks, profile.slices
    columns = (slices.track, slices.start_ns - slices.start_ns.min(), slices.duration_ns, slices.node)
    return [
        (tracks.label(track), tracks.kind[track], start, duration, [tree.label(above) for above in tree.path(node)])
        for track, start, duration, node in zip(*(column.tolist() for column in columns), strict=True)
    ]


def arrows(profile: Profile) -> list[tuple[str, str]]:
    tree, node = profile.tree, profile.slices.node
    pairs = zip(profile.flows.source.tolist(), profile.flows.target.tolist(), strict=True)
    return [(tree.label(node[source]), tree.label(node[target])) for source, target in pairs]


def test_memory_does_not_grow_with_the_text_of_the_file(tmp_path: Path) -> None:
    event = json.dumps(slice_event("cpu_op", "aten::mm", 1, 2, shapes="x" * 5000))
    with gzip.open(tmp_path / "trace.json.gz", "wt", compresslevel=1) as file:
        file.write('{"traceEvents":[' + ",".join([event] * 10_000) + "]}")
    tracemalloc.start()
    profile = formats.load(tmp_path / "trace.json.gz")
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(profile.slices) == 10_000
    assert peak_bytes < 16 << 20  # of 50 MB


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ('{"traceEvents":[{"ph":"X"}', "it breaks off"),
        ('{"traceEvents":[{"ph":"X"} {"ph":"X"}]}', "after an element of a list"),
        ('{"traceEvents":[5]}', "an event is not an object"),
        ('{"traceEvents":[{"ph":"X","ts":-1}]}', "ts of an event is not a time: -1"),
        ('{"traceEvents":[{"ph":"X","ts":1e300}]}', "ts of an event is not a time"),
        ('{"traceEvents":[{"ph":"X","ts":NaN}]}', "ts of an event is not a time"),
        ('{"traceEvents":{"ph":1}}', "unknown format"),
    ],
)
def test_damage_is_told(text: str, error: str, tmp_path: Path) -> None:
    (tmp_path / "trace.json").write_text(text)
    with pytest.raises(BadFile, match=error):
        formats.load(tmp_path / "trace.json")
