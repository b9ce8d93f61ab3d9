"""Operators of real PyTorch on the CPU, and its own profilers beside ours."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

import bragg
from tests.support.fake_gpu_runs import Record
from tests.support.runs import Recorder, entered

pytestmark = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed")


@pytest.fixture
def recorder(tmp_path: Path) -> Recorder:
    return Recorder(tmp_path)


def test_operators_of_a_training_step_are_recorded_under_their_scope(recorder: Recorder) -> None:
    run = recorder.program(
        """
        import bragg, torch
        model = torch.nn.Linear(8, 4)
        for step in range(3):
            with bragg.scope("step"):
                model(torch.ones(2, 8)).sum().backward()
                try:
                    torch.cuda.synchronize()
                except (AssertionError, RuntimeError):
                    pass  # there is no GPU
        """
    )
    tree = run.main.tree
    counts = run.main.own("host_count")
    under_step = {
        tree.label(node)
        for node in range(len(tree))
        if counts[node] and "step" in [tree.label(above) for above in tree.path(node)]
    }
    assert entered(run.main, "aten::linear") == 3
    assert entered(run.main, "torch.cuda.synchronize") == 3
    assert entered(run.main, "AddmmBackward0") == 3
    assert under_step >= {"aten::linear", "AddmmBackward0", "aten::mm", "torch.cuda.synchronize"}
    assert run.main.meta["versions"]["torch"]


@pytest.mark.parametrize(("framework", "count"), [("auto", 1), ("off", 0)])
def test_operators_are_recorded_on_a_gpu_too_unless_they_are_switched_off(
    record: Record, framework: str, count: int
) -> None:
    run = record(
        """
        import torch
        with bragg.scope("step"): torch.ones(2, 2) @ torch.ones(2, 2)
        gpu.launch("kernel")
        gpu.synchronize()
        """,
        framework=framework,
    )
    assert entered(run.main, "aten::matmul") == count


# Observers see what PyTorch's own profilers see; of emitters of ITT one thread has one.
@pytest.mark.parametrize(("intake", "seen_beside_a_profiler"), [("observers", 1), ("itt", 0)])
def test_profilers_of_pytorch_work_and_operators_count_once(
    recorder: Recorder,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    intake: str,
    seen_beside_a_profiler: int,
) -> None:
    monkeypatch.setenv("BRAGG_OPERATORS", intake)
    run = recorder.program(
        """
        import torch
        one = torch.ones(4)
        with torch.profiler.profile() as profile:
            torch.sin(one)
        print([event.name for event in profile.events() if event.name.startswith("aten::s")])
        torch.cos(one)
        with torch.autograd.profiler.emit_itt():
            torch.exp(one)
        try:
            with torch.autograd.profiler.emit_nvtx():
                torch.sin(one)
        except (AssertionError, RuntimeError):
            print("no NVTX")
        torch.tanh(one)
        """
    )
    assert capfd.readouterr().out == "['aten::sin']\nno NVTX\n"
    counts = {name: entered(run.main, f"aten::{name}") for name in ("sin", "cos", "exp", "tanh")}
    assert counts == {"sin": seen_beside_a_profiler, "cos": 1, "exp": 1, "tanh": 1}
    assert run.main.meta["torch_operators"] == {"observers": "observers", "itt": "itt (BRAGG_OPERATORS=itt)"}[intake]


def test_operators_of_other_threads_and_processes_are_recorded(
    recorder: Recorder, capfd: pytest.CaptureFixture[str]
) -> None:
    run = recorder.program(
        """
        import torch
        from concurrent.futures import ThreadPoolExecutor
        from torch.utils.data import DataLoader, Dataset

        class Numbers(Dataset):
            def __len__(self): return 4
            def __getitem__(self, index): return torch.full((2,), float(index)).erf()

        if __name__ == "__main__":
            with ThreadPoolExecutor(2) as threads:
                list(threads.map(torch.tanh, [torch.ones(2)] * 6))
            list(DataLoader(Numbers(), num_workers=2))
        """
    )
    assert entered(run.main, "aten::tanh") == 6
    workers = list(run.profiles.values())[1:]
    assert [entered(worker, "aten::erf") for worker in workers] == [2, 2]
    assert capfd.readouterr().err == ""


def test_backward_inside_backward_and_engine_callbacks_work(
    recorder: Recorder, capfd: pytest.CaptureFixture[str]
) -> None:
    recorder.program(
        """
        import torch
        from torch.autograd import Variable

        class Twice(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x): return x * 2
            @staticmethod
            def backward(ctx, gradient):
                with torch.enable_grad():
                    inner = torch.ones(2, requires_grad=True)
                    (inner * 3).sum().backward()
                Variable._execution_engine.queue_callback(lambda: print("called back"))
                return gradient * inner.grad

        x = torch.ones(2, requires_grad=True)
        Twice.apply(x).sum().backward()
        print(x.grad.tolist())
        """
    )
    assert capfd.readouterr().out == "called back\n[3.0, 3.0]\n"


def test_operators_are_recorded_when_pytorch_was_imported_and_has_threads_before_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("BRAGG_OPERATORS", raising=False)
    program = f"""
        import threading, warnings, torch
        import bragg
        warnings.simplefilter("error")
        starts, ends, one = threading.Event(), threading.Event(), torch.ones(2)

        def work():
            torch.cos(one)
            starts.wait()
            for _ in range(3):
                torch.sin(one)
            ends.set()

        thread = threading.Thread(target=work)
        thread.start()
        session = bragg.start({str(tmp_path / "late.bragg")!r}, backend="cpu", context="shadow")
        starts.set()
        ends.wait()
        session.stop()
        torch.tanh(one)
        thread.join()
    """
    subprocess.run([sys.executable, "-c", dedent(program)], check=True, timeout=120)
    late = bragg.load(tmp_path / "late.bragg")
    assert {name: entered(late, f"aten::{name}") for name in ("cos", "sin", "tanh")} == {"cos": 0, "sin": 3, "tanh": 0}


def test_operators_that_raise_and_ranges_that_end_in_any_order_leave_the_path_as_it_was(
    recorder: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("BRAGG_OPERATORS", raising=False)
    run = recorder.program(
        """
        import gc, threading, torch
        from torch.autograd.profiler import record_function
        one = torch.ones(2)
        for _ in range(3):
            try:
                torch.mm(one, one)
            except RuntimeError:
                pass
        left = record_function("left open")
        left.__enter__()
        torch.sin(one)
        threads = [threading.Thread(target=left.__dict__.clear)]
        threads[0].start()
        threads[0].join()
        torch.cos(one)
        name = "a, [b]\\n" + "x" * 100_000
        with record_function(name):
            torch.tanh(one)
        """,
        context="shadow",
    )
    tree, counts = run.main.tree, run.main.own("host_count")
    paths = {
        tree.label(node): [tree.label(above) for above in tree.path(node)[1:-1]]
        for node in range(len(tree))
        if counts[node] and tree.label(node) in ("aten::sin", "aten::cos", "aten::tanh")
    }
    assert paths["aten::sin"] == ["left open"]
    assert paths["aten::cos"] == []
    assert len(paths["aten::tanh"]) == 1
    assert entered(run.main, "aten::mm") == 3
