"""Operators of backward passes of real PyTorch on the CPU, below the forward operators that they belong to."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from bragg.grouping.modules import group_by_module
from bragg.model import Profile
from bragg.model.transform import outermost
from tests.support.runs import Recorder

pytestmark = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed")

PROGRAM = """
    import threading
    import torch
    from torch.utils.checkpoint import checkpoint

    x = torch.ones(4, 4, requires_grad=True)

    def retained():
        y = torch.tanh(x).sum()
        y.backward(retain_graph=True)
        y.backward()

    def double():
        (gradient,) = torch.autograd.grad(torch.sin(x).sum(), x, create_graph=True)
        gradient.sum().backward()

    def of_another_thread():
        y = torch.log(x)
        thread = threading.Thread(target=lambda: y.sum().backward())
        thread.start()
        thread.join()

    def in_threads():
        threads = [threading.Thread(target=lambda: torch.erf(x).sum().backward()) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def recomputed(use_reentrant):
        checkpoint(torch.sigmoid, x, use_reentrant=use_reentrant).sum().backward()

    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return torch.asinh(x)
        @staticmethod
        def backward(ctx, gradient):
            return torch.atan(gradient)

    retained()
    double()
    of_another_thread()
    in_threads()
    recomputed(False)
    recomputed(True)
    Twice.apply(x).sum().backward()
    try:
        y = torch.exp(x)
        y.register_hook(lambda _: 1 / 0)
        y.sum().backward()
    except ZeroDivisionError:
        pass
    torch.cos(x).sum().backward()
"""


def paths_to(profile: Profile, name: str, *, without: tuple[str, ...] = ()) -> dict[tuple[str, ...], int]:
    """How often the operators of a name were entered, by their path."""
    tree = profile.tree
    counts = profile.own("host_count")
    return {
        tuple(label for label in map(tree.label, tree.path(node)[1:]) if label not in without): int(counts[node])
        for node in range(len(tree))
        if tree.label(node) == name and counts[node]
    }


@pytest.fixture(scope="module")
def shadow(tmp_path_factory: pytest.TempPathFactory) -> Profile:
    return Recorder(tmp_path_factory.mktemp("autograd")).program(PROGRAM, context="shadow").main


def test_a_backward_operator_has_the_path_of_its_forward_operator(shadow: Profile) -> None:
    assert paths_to(shadow, "CosBackward0")["aten::cos", "[backward]", "CosBackward0"] == 1


def test_a_graph_that_is_retained_counts_twice(shadow: Profile) -> None:
    assert paths_to(shadow, "TanhBackward0") == {("aten::tanh", "[backward]", "TanhBackward0"): 2}


def test_the_backward_of_a_backward_stands_below_it(shadow: Profile) -> None:
    second = ("aten::sin", "[backward]", "SinBackward0", "aten::cos", "[backward]", "CosBackward0")
    assert paths_to(shadow, "CosBackward0")[second] == 1


def test_threads_do_not_confuse_it(shadow: Profile) -> None:
    assert paths_to(shadow, "LogBackward0") == {("aten::log", "[backward]", "LogBackward0"): 1}
    assert paths_to(shadow, "ErfBackward0") == {("aten::erf", "[backward]", "ErfBackward0"): 4}


def test_a_function_of_the_program_is_an_operator(shadow: Profile) -> None:
    assert paths_to(shadow, "aten::atan") == {("Twice", "[backward]", "TwiceBackward", "aten::atan"): 1}


def test_what_checkpoints_compute_again_says_so(shadow: Profile) -> None:
    when_unpacked = ("aten::sigmoid", "[backward]", "SigmoidBackward0", "[recompute]", "aten::sigmoid")
    by_node = ("CheckpointFunction", "[backward]", "CheckpointFunctionBackward", "[recompute]", "aten::sigmoid")
    again = {path: n for path, n in paths_to(shadow, "aten::sigmoid").items() if "[recompute]" in path}
    assert again == {when_unpacked: 1, by_node: 1}
    assert (*by_node, "[backward]", "SigmoidBackward0") in paths_to(shadow, "SigmoidBackward0")


def test_every_backward_operator_of_them_is_known(shadow: Profile) -> None:
    names = {shadow.tree.label(node) for node in range(len(shadow.tree))}
    assert "[backward of an unknown operator]" not in names


def test_modules_have_their_forward_and_backward_time(tmp_path: Path) -> None:
    run = Recorder(tmp_path).program(
        """
        import torch

        class Net(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.layers = torch.nn.ModuleList(torch.nn.Linear(64, 64) for _ in range(2))
            def forward(self, x):
                for layer in self.layers:
                    x = torch.relu(layer(x))
                return x

        net = Net()
        optimizer = torch.optim.SGD(net.parameters(), 0.1)
        for _ in range(3):
            net(torch.ones(8, 64)).sum().backward()
            optimizer.step()
        print(torch.compile(net, backend="eager", fullgraph=True)(torch.ones(8, 64)).shape)
        """,
        modules=True,
        sample_interval_us=0,
    )
    (path,) = (path for path in paths_to(run.main, "AddmmBackward0") if "Net.layers.1" in path)
    assert [label for label in path if label.startswith(("Net", "aten", "["))] == [
        "Net",
        "Net.layers.1",
        "aten::linear",
        "aten::addmm",
        "[backward]",
    ]
    assert any(label.endswith("@Net.forward") for label in path)

    grouped = group_by_module(run.main, "host_time")
    grouped.check()
    tree = grouped.tree
    assert [*map(tree.label, range(len(tree)))].count("Net") == 2  # one of them what is compiled, without a backward
    rows = {tree.label(node): node for node in reversed(range(len(tree)))}  # the first of a name
    updates = {"Net.layers.0 [update]", "Net.layers.1 [update]"}
    optimizer = {name for name in rows if name.startswith("SGD.")} | updates
    linear = {"Net.layers.0 (Linear)", "Net.layers.1 (Linear)"}
    assert set(rows) == {"ROOT", "Net", *linear, "OptimizedModule", *optimizer}
    for name in ("Net", *linear):
        parts = [grouped.inclusive(phase)[rows[name]] for phase in ("forward", "backward", "optimizer")]
        assert parts[0] > 0
        assert parts[1] > 0
        assert parts[2] == 0
        assert sum(parts) == grouped.inclusive("host_time")[rows[name]]
    assert all(grouped.inclusive("optimizer")[rows[name]] > 0 for name in optimizer)


def test_nothing_of_pytorch_is_recorded_when_it_is_switched_off(tmp_path: Path) -> None:
    run = Recorder(tmp_path).program(
        "import bragg, torch\nwith bragg.scope('step'):\n    torch.sin(torch.ones(2))", framework="off"
    )
    assert not any(run.main.tree.label(node).startswith("aten::") for node in range(len(run.main.tree)))


def test_what_autograd_records_and_runs_is_counted(tmp_path: Path) -> None:
    program = """
        import torch
        x = torch.ones(4, 4, requires_grad=True)
        for _ in range(10):
            y = torch.tanh(torch.sin(x))
        with torch.no_grad():
            torch.tanh(x)
        y.sum().backward()
    """
    run = Recorder(tmp_path).program(program).main.run
    assert (run.autograd_nodes, run.evaluated_nodes) == (21, 3)


def test_the_main_thread_has_no_more_time_than_passed(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    program = """
        import time, torch

        torch.set_num_threads(1)
        x, w = torch.randn(64, 256), torch.randn(256, 256, requires_grad=True)

        def trained():
            for _ in range(300):
                h = x
                for _ in range(6):
                    h = torch.tanh(h @ w)
                h.sum().backward()

        began = time.perf_counter()
        trained()
        print(time.perf_counter() - began)
    """
    profile = Recorder(tmp_path).program(program).main
    passed_ns = float(capfd.readouterr().out) * 1e9
    tree = profile.tree
    is_trained = np.array([name == "trained" for name in tree.frames.name])[tree.frame]
    time_ns = float(profile.inclusive("host_time")[outermost(tree, is_trained)].sum())
    assert 0.9 * passed_ns < time_ns < 1.01 * passed_ns + 5e6  # its first sample may have begun before it
