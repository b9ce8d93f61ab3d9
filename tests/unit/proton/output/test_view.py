from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bragg.model import CallTree, FrameKind, FrameTable, Metric, MetricKind, Profile
from bragg.proton.output.view import proton_tree, proton_view

NODES = [  # parent, kind, name, device
    (-1, FrameKind.ROOT, "root", -1),
    (0, FrameKind.SCOPE, "step", -1),
    (1, FrameKind.OPERATOR, "aten::mm", -1),
    (2, FrameKind.KERNEL, "mm<BM=64 w4 s3>", 0),
    (2, FrameKind.KERNEL, "mm<BM=128 w8 s3>", 0),
    (2, FrameKind.KERNEL, "void at::k<float>(int)", 0),
    (1, FrameKind.MEMORY, "copy HtoD", 0),
    (1, FrameKind.STATE, "<captured before recording>", -1),
    (7, FrameKind.KERNEL, "late", 1),
]


def profile() -> Profile:
    parents, kinds, names, devices = zip(*NODES, strict=True)
    count = len(NODES)
    frames = FrameTable(np.array(kinds), list(names), [""] * count, np.zeros(count), np.array(devices))
    tree = CallTree(np.array(parents), np.arange(count), frames)
    own = {
        "gpu_time": [0, 0, 0, 10, 20, 5, 7, 0, 3],
        "gpu_count": [0, 0, 0, 1, 2, 1, 1, 0, 1],
        "host_count": [0, 1, *[0] * 7],
    }
    metrics = {name: Metric(name, "", MetricKind.INCLUSIVE, np.array(values)) for name, values in own.items()}
    devices_known = [{"arch": "90", "num_sms": 132, "clock_khz": 1, "memory_clock_khz": 2, "bus_width_bits": 3}]
    return Profile({"devices": devices_known}, tree, metrics)


def paths(viewed: Profile) -> dict[str, int]:
    tree, time_ns = viewed.tree, viewed.own("gpu_time () ") if "gpu_time () " in viewed.metrics else None
    assert time_ns is None
    metric = next(metric for metric in viewed.metrics.values() if metric.name == "gpu_time")
    return {
        "/".join(tree.label(step) for step in tree.path(node)[1:]): int(metric.own[node])
        for node in range(1, len(tree))
    }


def test_view_has_only_what_proton_records() -> None:
    assert paths(proton_view(profile())) == {
        "step": 0,
        "step/mm": 30,
        "step/void at::k<float>(int)": 5,
        "step/late": 3,
    }


@pytest.mark.parametrize("name", ["mm_<grid:64x1x1>", "mm<fp16>", "mm_<grid:8>_<warps:4>", "mm [M=8]"])
def test_names_that_the_program_gave_its_kernels_stay(name: str) -> None:
    recorded = profile()
    frames = recorded.tree.frames
    renamed = replace(recorded.tree, frames=frames.replace(name=[*frames.name[:3], name, *frames.name[4:]]))
    assert f"step/{name}" in paths(proton_view(replace(recorded, tree=renamed)))


def test_tree_has_proton_s_metrics_and_none_of_ours() -> None:
    root, devices = proton_tree(profile())
    (step,) = root["children"]
    assert root["metrics"] == {"time (ns)": 0, "count": 0}
    assert step["metrics"] == {}
    assert step["children"][0] == {
        "frame": {"name": "mm", "type": "function"},
        "metrics": {"time (ns)": 30, "count": 3, "device_id": "0", "device_type": "CUDA"},
        "children": [],
    }
    assert devices == {
        "CUDA": {"0": {"arch": "90", "bus_width": 3, "clock_rate": 1, "memory_clock_rate": 2, "num_sms": 132}}
    }


def test_metric_of_the_program_called_count_is_added_to_that_of_kernels() -> None:
    recorded = profile()
    count = Metric("count", "", MetricKind.INCLUSIVE, np.array([0, 4, *[0] * 7]))
    root, _ = proton_tree(replace(recorded, metrics={**recorded.metrics, "count": count}))
    step = root["children"][0]
    assert step["metrics"] == {"count": 4}
    assert step["children"][0]["metrics"]["count"] == 3


def test_nothing_recorded_is_an_empty_tree() -> None:
    assert proton_tree(None) == [{"frame": {"name": "ROOT", "type": "function"}, "metrics": {}, "children": []}, {}]


def test_a_state_is_the_innermost_frame_but_where_a_graph_was_captured_is_not() -> None:
    nodes = [
        (-1, FrameKind.ROOT, "root"),
        (0, FrameKind.STATE, "state"),
        (1, FrameKind.PYTHON, "called"),
        (2, FrameKind.KERNEL, "sum"),
        (1, FrameKind.KERNEL, "direct"),
        (0, FrameKind.STATE, "<captured_at>"),
        (5, FrameKind.PYTHON, "capture"),
        (6, FrameKind.KERNEL, "node"),
    ]
    parents, kinds, names = zip(*nodes, strict=True)
    frames = FrameTable(np.array(kinds), list(names), [""] * 8, np.zeros(8), np.zeros(8))
    times = Metric("gpu_time", "ns", MetricKind.INCLUSIVE, np.array([0, 0, 0, 3, 2, 0, 0, 1]))
    recorded = Profile({}, CallTree(np.array(parents), np.arange(8), frames), {"gpu_time": times})
    found = {path: time for path, time in paths(proton_view(recorded)).items() if time}
    assert found == {"called/state/sum": 3, "state/direct": 2, "<captured_at>/capture/node": 1}


def test_metadata_is_grouped_by_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bragg.proton.output.view.ONE_METADATA_STATE", False)
    state = "__proton_launch_metadata"
    names = ["root", f"{state}:a", "sum", f"{state}:b", "sum", state, "max", "scope", f"{state}:a", "sum"]
    kinds = [
        FrameKind.ROOT,
        *[FrameKind.STATE, FrameKind.KERNEL] * 3,
        FrameKind.SCOPE,
        FrameKind.STATE,
        FrameKind.KERNEL,
    ]
    frames = FrameTable(np.array(kinds), names, [""] * 10, np.zeros(10), np.zeros(10))
    times = Metric("gpu_time", "ns", MetricKind.INCLUSIVE, np.array([0, 0, 1, 0, 2, 0, 3, 0, 0, 4]))
    parents = np.array([-1, 0, 1, 0, 3, 0, 5, 0, 7, 8])
    viewed = proton_view(Profile({}, CallTree(parents, np.arange(10), frames), {"gpu_time": times}))
    found = {path: time for path, time in paths(viewed).items() if time}
    assert found == {f"{state}/a/sum": 1, f"{state}/b/sum": 2, f"{state}/max": 3, f"scope/{state}/a/sum": 4}
    assert sum(viewed.tree.label(node) == state for node in range(len(viewed.tree))) == 2


def test_python_function_goes_by_its_own_name() -> None:
    names = ["root", "Model.forward", "train.<locals>.step", "<module>"]
    kinds = [FrameKind.ROOT, *[FrameKind.PYTHON] * 3]
    frames = FrameTable(np.array(kinds), names, ["", "m.py", "m.py", "m.py"], np.array([0, 3, 7, 1]), np.full(4, -1))
    recorded = Profile({}, CallTree(np.array([-1, 0, 1, 2]), np.arange(4), frames), {})
    viewed = proton_view(recorded).tree
    assert [viewed.label(node) for node in range(1, 4)] == ["m.py:3@forward", "m.py:7@step", "m.py:1@<module>"]
