from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from bragg import formats
from bragg.formats.encodings import msgpack
from bragg.model import Combine, CounterTable, Metric, MetricKind, Profile, TrackKind, TrackTable
from tests.support.profiles import profile_from_text, tree_to_text
from tests.support.traces import trace_from_text

TRACE = """
    thread 7
      1000-1900 step
      1100-1150 cuLaunchKernel ->1
      1200-1240 cuLaunchKernel ->2
    stream 13
      1300-1500 matmul <-1
      1600-1700 relu <-2"""


def export(profile: Profile, format_name: str, folder: Path) -> str:
    path = folder / "export"
    formats.export(profile, format_name, path)
    return path.read_text()


def collapsed(text: str, folder: Path) -> str:
    return export(profile_from_text(text), "collapsed", folder)


def test_collapsed_stacks_leave_out_the_root_and_what_has_no_time(tmp_path: Path) -> None:
    text = "root\n  forward\n    matmul 12us x3\n  idle\n  relu 1us"
    assert collapsed(text, tmp_path) == "forward;matmul 12000\nrelu 1000\n"


def test_semicolons_and_line_breaks_in_names_do_not_split_a_stack(tmp_path: Path) -> None:
    profile = profile_from_text("root\n  a\n    k 1us")
    frames = profile.tree.frames.replace(name=["root", "a;b\nc", "k"])
    renamed = replace(profile, tree=replace(profile.tree, frames=frames))
    assert export(renamed, "collapsed", tmp_path) == "a:b c;k 1000\n"


def test_hatchet_is_the_tree_and_the_devices_in_the_layout_of_proton(tmp_path: Path) -> None:
    profile = profile_from_text('root\n  step host=9us\n    say "hi" 12us x3 @0')
    device = {
        "name": "NVIDIA H200",
        "arch": "90",
        "num_sms": 132,
        "clock_khz": 1980000,
        "memory_clock_khz": 2619000,
        "bus_width_bits": 6144,
    }
    tree, devices = json.loads(export(replace(profile, meta={"devices": [device]}), "hatchet", tmp_path))
    kernel = {"time (ns)": 12000, "count": 3, "device_id": "0", "device_type": "CUDA"}
    assert tree == {
        "frame": {"name": "ROOT", "type": "function"},
        "metrics": {"time (ns)": 0, "count": 0, "cpu_time (ns)": 0},
        "children": [
            {
                "frame": {"name": "step", "type": "function"},
                "metrics": {"cpu_time (ns)": 9000},
                "children": [
                    {"frame": {"name": 'say "hi"', "type": "function"}, "metrics": kernel, "children": []},
                ],
            },
        ],
    }
    facts = {"arch": "90", "bus_width": 6144, "clock_rate": 1980000, "memory_clock_rate": 2619000, "num_sms": 132}
    assert devices == {"CUDA": {"0": facts}}


def test_hatchet_has_metrics_of_the_program_by_kind(tmp_path: Path) -> None:
    profile = profile_from_text("root\n  step\n    k 1us @0")
    missing = np.nan
    added = [
        Metric("flops8", "", MetricKind.INCLUSIVE, np.array([1.0, 0, 5e9])),
        Metric("bytes", "", MetricKind.INCLUSIVE, np.array([0, 0, 7])),
        Metric("lat", "us", MetricKind.EXCLUSIVE, np.array([2, 3, 0])),
        Metric("tile", "", MetricKind.PROPERTY, np.array([missing, missing, 64]), Combine.MAX),
        Metric("v[0]", "", MetricKind.INCLUSIVE, np.array([0, 1.5, 0])),
        Metric("v[1]", "", MetricKind.INCLUSIVE, np.array([0, 0.0, 0])),
    ]
    profile = replace(profile, metrics={**profile.metrics, **{metric.name: metric for metric in added}})
    root, _ = json.loads(export(profile, "hatchet", tmp_path))
    step = root["children"][0]
    assert root["metrics"] == {"time (ns)": 0, "count": 0, "flops8": 1.0, "bytes": 0}
    assert step["metrics"] == {"lat (us)": 3, "v": [1.5, 0.0]}
    kernel = step["children"][0]["metrics"]
    assert {name: kernel[name] for name in ("flops8", "bytes", "tile")} == {"flops8": 5e9, "bytes": 7, "tile": 64}
    assert [type(kernel[name]) for name in ("flops8", "bytes", "tile")] == [float, int, int]


def test_hatchet_in_messagepack_holds_the_same(tmp_path: Path) -> None:
    profile = profile_from_text("root\n  größe\n    k 1us x3 @0\n  b.py:3@f host=2us")
    formats.export(profile, "hatchet_msgpack", tmp_path / "packed")
    text = export(profile, "hatchet", tmp_path)
    assert msgpack.decode((tmp_path / "packed").read_bytes()) == json.loads(text)
    assert text.startswith('\n[\n{\n"children": [\n')
    assert tree_to_text(formats.load(tmp_path / "packed")) == tree_to_text(profile)


def test_a_call_path_deeper_than_any_json_encoder_follows_is_written(tmp_path: Path) -> None:
    text = "\n".join("  " * depth + f"f{depth}" for depth in range(5000)) + " 1us"
    assert export(profile_from_text(text), "hatchet", tmp_path).count('"children"') == 5000


def chrome_events(profile: Profile, folder: Path) -> list[dict[str, Any]]:
    events: list[dict[str, Any]] = json.loads(export(profile, "chrome", folder))["traceEvents"]
    return events


def test_chrome_slices_have_microseconds_and_places_from_1(tmp_path: Path) -> None:
    slices = [event for event in chrome_events(trace_from_text(TRACE), tmp_path) if event["ph"] == "X"]
    assert [(event["name"], event["ts"], event["dur"], event["pid"], event["tid"]) for event in slices] == [
        ("step", 0.0, 0.9, 1, 1),
        ("cuLaunchKernel", 0.1, 0.05, 1, 1),
        ("cuLaunchKernel", 0.2, 0.04, 1, 1),
        ("matmul", 0.3, 0.2, 2, 2),
        ("relu", 0.6, 0.1, 2, 2),
    ]


def test_chrome_arrows_start_at_a_launch_and_end_at_its_kernel(tmp_path: Path) -> None:
    flows = [event for event in chrome_events(trace_from_text(TRACE), tmp_path) if event["ph"] in "sf"]
    assert [(event["ph"], event["id"], event["ts"], event["tid"]) for event in flows] == [
        ("s", 1, 0.1, 1),
        ("f", 1, 0.3, 2),
        ("s", 2, 0.2, 1),
        ("f", 2, 0.6, 2),
    ]


def test_chrome_counters_have_their_values(tmp_path: Path) -> None:
    profile = trace_from_text(TRACE)
    counter = TrackTable(
        **{name: np.array([0]) for name in ("device", "context", "stream")},
        kind=np.array([TrackKind.COUNTER]),
        process=np.array([42]),
        name=["power (W)"],
    )
    profile = replace(
        profile,
        tracks=TrackTable.concatenate([profile.tracks, counter]),
        counters=CounterTable(np.array([1000, 1500]), np.array([2, 2]), np.array([400.0, 412.5])),
    )
    counters = [event for event in chrome_events(profile, tmp_path) if event["ph"] == "C"]
    assert [(event["name"], event["ts"], event["args"]["value"]) for event in counters] == [
        ("power (W)", 0.0, 400.0),
        ("power (W)", 0.5, 412.5),
    ]


def speedscope(profile: Profile, folder: Path) -> dict[str, list[tuple[str, float]]]:
    """For each profile its stacks as text, with their weights."""
    document = json.loads(export(profile, "speedscope", folder))
    names = [frame["name"] for frame in document["shared"]["frames"]]
    return {
        item["name"]: [
            (";".join(names[frame] for frame in stack), weight)
            for stack, weight in zip(item["samples"], item["weights"], strict=True)
        ]
        for item in document["profiles"]
    }


def test_speedscope_flame_graphs_put_the_heaviest_sibling_first(tmp_path: Path) -> None:
    profile = profile_from_text("root\n  a\n    k 1us\n  b\n    k 5us\n    l 3us x4")
    found = speedscope(profile, tmp_path)
    assert found["gpu_time"] == [("b;k", 5000), ("b;l", 3000), ("a;k", 1000)]
    assert list(found) == ["gpu_time", "gpu_count"]


def test_speedscope_names_a_line_of_no_known_function_by_its_place(tmp_path: Path) -> None:
    profile = profile_from_text("root\n  /x/standard.py:191@max #line\n    k 1us")
    frames = replace(profile.tree.frames, name=["", "", "k"])
    found = speedscope(replace(profile, tree=replace(profile.tree, frames=frames)), tmp_path)
    assert found["gpu_time"] == [("standard.py:191;k", 1000)]


def test_speedscope_timelines_show_what_ran_innermost_and_when_nothing_did(tmp_path: Path) -> None:
    found = speedscope(trace_from_text(TRACE), tmp_path)
    assert found["thread 7"] == [
        ("step", 100),
        ("cuLaunchKernel", 50),
        ("step", 50),
        ("cuLaunchKernel", 40),
        ("step", 660),
    ]
    assert found["stream 13"] == [("matmul", 200), ("", 100), ("relu", 100)]
