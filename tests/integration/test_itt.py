"""Tasks of real ITT users: PyTorch and oneDNN (no GPU needed), and the `ittapi` package."""

import importlib.util
import subprocess
import sys
from collections import Counter
from pathlib import Path
from textwrap import dedent

import pytest

from bragg.formats import capture
from bragg.model import FrameKind, Profile

needs_torch = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed")
needs_ittapi = pytest.mark.skipif(importlib.util.find_spec("ittapi") is None, reason="ittapi is not installed")

PROLOGUE = """
import os, sys
from bragg import _core
os.environ["INTEL_LIBITTNOTIFY64"] = _core.library_path()  # read when the first library with ITT is loaded

def start(context="shadow"):
    return _core.Session(sys.argv[1], f'{{"backend": "cpu", "context": "{context}", "data": "tree"}}')
"""


def record(tmp_path: Path, program: str) -> Profile:
    """Run a program in a process of its own; the profile of the session that it starts and stops."""
    part = tmp_path / "itt.part"
    subprocess.run([sys.executable, "-c", PROLOGUE + dedent(program), str(part)], check=True, timeout=300)
    return capture.read(part)


def entered(profile: Profile) -> Counter[tuple[str, ...]]:
    """How often each path of operators and scopes was entered, host threads together."""
    counts = profile.own("host_count")
    paths: Counter[tuple[str, ...]] = Counter()
    for node in range(1, len(profile.tree)):
        paths[tuple(profile.tree.label(above) for above in profile.tree.path(node)[1:])] += int(counts[node])
    return paths


def kinds(profile: Profile) -> dict[str, FrameKind]:
    tree = profile.tree
    return {tree.label(node): FrameKind(tree.kind[node]) for node in range(1, len(tree))}


@needs_torch
def test_forward_and_backward_operators_of_torch_arrive(tmp_path: Path) -> None:
    profile = record(
        tmp_path,
        """
        import torch
        x, w = torch.randn(8, 8), torch.randn(8, 8, requires_grad=True)
        session = start()
        with torch.autograd.profiler.emit_itt(), _core.Scope("train"):
            for _ in range(3):
                with torch.autograd.profiler.record_function("forward"):
                    loss = torch.relu(x @ w).sum()
                loss.backward()
        assert _core.context_depth() == 0
        session.stop()
        """,
    )
    paths = entered(profile)
    assert paths["train",] == 1
    assert paths["train", "forward", "aten::matmul", "aten::mm"] == 3
    assert paths["train", "forward", "aten::relu"] == 3
    backward = ("train", "autograd::engine::evaluate_function: MmBackward0", "MmBackward0")
    assert paths[backward] == 3
    assert paths[(*backward, "aten::mm")] == 3
    assert all(path[0] == "train" for path in paths)
    assert kinds(profile)["train"] == FrameKind.SCOPE
    assert {kind for name, kind in kinds(profile).items() if name != "train"} == {FrameKind.OPERATOR}
    host_time = profile.inclusive("host_time")
    assert host_time[0] > 0


@needs_torch
def test_operators_stand_below_the_python_lines_that_called_them(tmp_path: Path) -> None:
    profile = record(
        tmp_path,
        """
        import torch
        def model(x):
            return torch.relu(
                x @ x)
        session = start("python")
        with torch.autograd.profiler.emit_itt():
            for _ in range(2):
                model(torch.ones(4, 4))
        session.stop()
        """,
    )
    tree, paths = profile.tree, entered(profile)
    matmul = next(node for node in range(len(tree)) if tree.label(node) == "aten::mm")
    above = [tree.label(node).rsplit("/", 1)[-1] for node in tree.path(matmul)[1:]]
    lines = [int(tree.frames.line[tree.frame[node]]) for node in tree.path(matmul)[1:]]
    assert [label.partition("@")[2] or label for label in above] == ["<module>", "model", "aten::matmul", "aten::mm"]
    assert lines[1] == lines[0] - 4
    assert sum(count for path, count in paths.items() if path[-1] == "aten::relu") == 2


@needs_torch
def test_primitives_of_onednn_arrive_below_the_operator(tmp_path: Path) -> None:
    profile = record(
        tmp_path,
        """
        import torch
        torch.set_num_threads(1)
        if not torch.backends.mkldnn.is_available():
            sys.exit("this torch has no oneDNN")
        layer, x = torch.nn.Conv2d(16, 32, 3), torch.randn(8, 16, 64, 64)
        session = start()
        with torch.no_grad(), torch.autograd.profiler.emit_itt():
            layer(x)
        session.stop()
        """,
    )
    convolution = ("aten::conv2d", "aten::convolution", "aten::_convolution", "aten::mkldnn_convolution")
    assert entered(profile)[(*convolution, "dnnl::primitive::execute::convolution")] == 1


@needs_torch
def test_a_session_that_starts_and_stops_between_operators_leaves_no_entry_open(tmp_path: Path) -> None:
    profile = record(
        tmp_path,
        """
        import torch
        x = torch.ones(4)
        with torch.autograd.profiler.emit_itt():
            torch.profiler.itt.range_push("outside")
            session = start()
            torch.profiler.itt.range_push("inside")
            x + x
            torch.profiler.itt.range_pop()
            torch.profiler.itt.range_pop()
            x * x
            session.stop()
            x - x
        assert _core.context_depth() == 0
        """,
    )
    assert entered(profile) == {("inside",): 1, ("inside", "aten::add"): 1, ("aten::mul",): 1}


@needs_ittapi
def test_tasks_of_ittapi_are_scopes_on_every_thread(tmp_path: Path) -> None:
    profile = record(
        tmp_path,
        """
        import threading, ittapi
        session = start()
        domain = ittapi.domain("application")

        @ittapi.task
        def decorated():
            pass

        def work():
            for _ in range(500):
                with ittapi.task("outer", domain=domain):
                    with ittapi.task("in\u00e9r"):
                        decorated()

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        session.stop()
        """,
    )
    assert entered(profile) == {("outer",): 2000, ("outer", "inér"): 2000, ("outer", "inér", "decorated"): 2000}
    assert set(kinds(profile).values()) == {FrameKind.SCOPE}


@needs_ittapi
def test_tasks_before_and_after_a_session_are_not_recorded(tmp_path: Path) -> None:
    profile = record(
        tmp_path,
        """
        import ittapi
        with ittapi.task("before"):
            assert _core.context_depth() == 0
        session = start()
        with ittapi.task("during"):
            assert _core.context_depth() == 1
        session.stop()
        with ittapi.task("after"):
            assert _core.context_depth() == 0
        """,
    )
    assert entered(profile) == {("during",): 1}
