"""`bragg.do_bench`, on the fake GPU and where there is none."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import bragg
from bragg.errors import BackendUnavailable, UsageError
from bragg.record.backends import cuda
from tests.support.fake_cuda import environment

SUPPORT = Path(__file__).parents[1] / "support"
PROLOGUE = """
import json, warnings
import bragg
from bragg.errors import BraggError
from fake_cuda import FakeCuda
cuda = FakeCuda()
stream, other = cuda.stream(), cuda.stream()
cuda.set_kernel_ns("k", 250_000)
def bench(fn, **options):
    return bragg.do_bench(fn, **{"warmup": 1, "rep": 5, "flush_l2": False, **options})
"""
# As much of PyTorch as benchmarks use, on the fake GPU.
TORCH = """
import sys, types
from contextlib import contextmanager, nullcontext
torch = types.ModuleType("torch")
torch.uint8, torch.__version__ = "uint8", "0"
class Tensor:
    pass
def empty(size, dtype, device):
    assert (size, dtype, device) == (256 << 20, "uint8", "cuda")
    return Tensor()
class Graph:
    def replay(self):
        cuda.launch_graph(self.executable, stream)
@contextmanager
def capture(graph):
    with cuda.capture(stream) as captured:
        yield
    graph.executable = cuda.instantiate(captured)
torch.empty = empty
torch.cuda = types.SimpleNamespace(
    synchronize=cuda.synchronize, Stream=cuda.stream, stream=lambda other: nullcontext(), CUDAGraph=Graph, graph=capture
)
sys.modules["torch"] = torch
"""
Run = Callable[..., Any]


@pytest.fixture
def run(fakes_directory: Path, tmp_path: Path) -> Run:
    """Run Python source on the fake GPU, and give the JSON that it printed."""

    def run_source(source: str, settings: dict[str, object] | None = None) -> Any:
        script = tmp_path / "program.py"
        script.write_text(PROLOGUE + textwrap.dedent(source))
        variables = {**os.environ, "PYTHONPATH": str(SUPPORT), **environment(fakes_directory, settings)}
        done = subprocess.run(
            [sys.executable, script], env=variables, cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        assert sorted(path.name for path in tmp_path.iterdir()) == ["program.py"]
        return json.loads(done.stdout)

    return run_source


def test_a_run_takes_the_time_of_its_kernels_and_not_of_the_gaps(run: Run) -> None:
    times = run(
        """
        import time
        def fn():
            cuda.launch("k", stream)
            time.sleep(0.0005)
            cuda.launch("k", stream)
        print(json.dumps(bench(fn, rep=100, return_mode="all")))
        """
    )
    assert times  # few, where the machine was busy while it was estimated how many there is time for
    assert times == pytest.approx([0.5] * len(times), abs=0.001)


def test_kernels_that_run_at_once_count_once(run: Run) -> None:
    times = run(
        """
        def fn():
            cuda.launch("k", stream)
            cuda.launch("k", other)
        print(json.dumps([bench(fn, return_mode="max"), bench(lambda: cuda.launch("k", stream))]))
        """
    )
    assert 0.25 <= times[0] < 0.5
    assert times[1] == pytest.approx(0.25, abs=0.001)


def test_what_prepares_a_run_is_not_measured(run: Run) -> None:
    time_ms, dropped = run(
        """
        class Tensor:
            drops = 0
            @property
            def grad(self): ...
            @grad.setter
            def grad(self, value):
                assert value is None
                Tensor.drops += 1
                cuda.launch("other", stream)
        print(json.dumps([bench(lambda: cuda.launch("k", stream), grad_to_none=[Tensor()]), Tensor.drops]))
        """
    )
    assert time_ms == pytest.approx(0.25, abs=0.001)
    assert dropped > 5


def test_summaries_are_those_that_were_asked_for(run: Run) -> None:
    values = run(
        """
        durations = iter(range(100_000, 100_000_000, 1000))
        def fn():
            cuda.set_kernel_ns("k", next(durations))
            cuda.launch("k", stream)
        modes = [bench(fn, return_mode=mode) for mode in ("min", "mean", "median", "max")]
        print(json.dumps([modes, bench(fn, quantiles=[0.5]), bench(fn, quantiles=[0, 0.5, 1])]))
        """
    )
    modes, single, several = values
    assert all(isinstance(value, float) for value in (*modes, single))
    assert several == sorted(several)
    assert len(several) == 3


def test_benches_of_a_rank_inside_a_recording_do_not_disturb_it(run: Run) -> None:
    time_ms, kernels = run(
        """
        import os, tempfile
        os.environ.update(RANK="1", WORLD_SIZE="2")
        with tempfile.TemporaryDirectory() as directory:
            session = bragg.start(f"{directory}/outer.bragg", backend="cuda", context="shadow")
            with bragg.scope("step"):
                time_ms = bench(lambda: cuda.launch("k", stream))
            profile = session.stop()
        print(json.dumps([time_ms, profile.total("gpu_count")]))
        """
    )
    assert time_ms == pytest.approx(0.25, abs=0.001)
    assert kernels > 5


def test_a_function_without_work_on_the_gpu_is_an_error(run: Run) -> None:
    message, *_ = run(
        """
        try:
            bench(lambda: None)
        except BraggError as error:
            print(json.dumps([str(error), error.exit_code]))
        """
    )
    assert "on the GPU" in message


def test_an_exception_of_the_function_is_its_own(run: Run) -> None:
    assert run(
        """
        def fn():
            raise KeyError("mine")
        try:
            bench(fn)
        except KeyError as error:
            print(json.dumps([error.args[0], bench(lambda: cuda.launch("k", stream)) > 0]))
        """
    ) == ["mine", True]


def test_lost_records_are_an_error_and_no_shorter_time(run: Run) -> None:
    message, exit_code = run(
        """
        try:
            bench(lambda: cuda.launch("k", stream))
        except BraggError as error:
            print(json.dumps([str(error), error.exit_code]))
        """,
        {"DROP_EVERY": 3},
    )
    assert "records dropped" in message
    assert exit_code == 1


def test_without_pytorch_the_cache_stays_warm_and_this_is_said_once(run: Run) -> None:
    messages, refused = run(
        """
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            bench(lambda: cuda.launch("k", stream), flush_l2=None)
        try:
            bench(lambda: cuda.launch("k", stream), flush_l2=True)
        except BraggError as error:
            print(json.dumps([[str(item.message) for item in caught], str(error)]))
        """
    )
    assert len(messages) == 1
    assert messages[0].startswith("PyTorch is not loaded")
    assert refused == "flushing the L2 cache needs PyTorch, which is not loaded"


def test_graphs_need_pytorch(run: Run) -> None:
    assert (
        run(
            """
        try:
            bragg.do_bench_cudagraph(lambda: None)
        except BraggError as error:
            print(json.dumps(str(error)))
        """
        )
        == "do_bench_cudagraph needs PyTorch"
    )


def test_the_cache_is_flushed_before_each_run_and_this_is_not_measured(run: Run) -> None:
    flushed, unflushed, flushes = run(
        TORCH
        + textwrap.dedent(
            """
            flushes = []
            Tensor.zero_ = lambda self: (flushes.append(1), cuda.launch("flush", stream))
            cuda.set_kernel_ns("flush", 90_000)
            launch = lambda: cuda.launch("k", stream)
            flushed = bragg.do_bench(launch, warmup=1, rep=5)
            print(json.dumps([flushed, bragg.do_bench(launch, warmup=1, rep=5, flush_l2=False), len(flushes)]))
            """
        )
    )
    assert [flushed, unflushed] == pytest.approx([0.25, 0.25], abs=0.001)
    assert flushes > 5


def test_replays_of_a_graph_are_divided_by_their_calls(run: Run) -> None:
    times = run(
        TORCH
        + textwrap.dedent(
            """
            def fn():
                cuda.launch("k", stream)
                cuda.launch("k", stream)
            print(json.dumps(bragg.do_bench_cudagraph(fn, rep=5, return_mode="all")))
            """
        )
    )
    assert times == pytest.approx([0.5] * 10, abs=0.002)


def test_without_a_gpu_the_function_is_not_called(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda.Cuda, "missing", lambda self, environ: "there is no NVIDIA driver here")
    calls: list[int] = []
    with pytest.raises(
        BackendUnavailable, match="kernels can only be measured on an NVIDIA GPU: there is no"
    ) as raised:
        bragg.do_bench(lambda: calls.append(1))
    assert calls == []
    assert "bragg doctor" in raised.value.hint


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"return_mode": "fastest"}, "unknown return mode 'fastest'"),
        ({"quantiles": [0.5, 1.5]}, "quantiles must be numbers from 0 to 1"),
        ({"quantiles": []}, "quantiles must be numbers from 0 to 1"),
    ],
)
def test_bad_arguments_are_refused_before_anything_runs(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        bragg.do_bench(pytest.fail, **options)
