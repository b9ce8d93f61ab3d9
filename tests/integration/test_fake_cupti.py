"""The fake CUDA driver and the fake CUPTI, which other tests rely on, behave as the real ones."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.fake_cuda import environment
from tests.support.fake_gpu_runs import Record, kernels

SUPPORT = Path(__file__).parents[1] / "support"
Run = Callable[..., str]


@pytest.fixture
def run(fakes_directory: Path, tmp_path: Path) -> Run:
    """Run Python source in a process that finds the fakes, and give what it printed."""

    def run_source(source: str, settings: dict[str, object] | None = None, **variables: str) -> str:
        script = tmp_path / "program.py"
        script.write_text(textwrap.dedent(source))
        fakes = environment(fakes_directory, settings)
        variables = {**os.environ, "PYTHONPATH": str(SUPPORT), **fakes, **variables}
        result = subprocess.run(
            [sys.executable, str(script)], env=variables, capture_output=True, text=True, check=False
        )
        assert result.returncode == 0, result.stderr
        return result.stdout.strip()

    return run_source


def test_every_scenario_of_the_fakes_holds(fakes_directory: Path) -> None:
    result = subprocess.run([fakes_directory / "fake_selftest"], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    assert result.stdout.rstrip().endswith(" 0 failed")


def test_python_program_launches_copies_and_replays_graphs(run: Run) -> None:
    printed = run(
        """
        from fake_cuda import Copy, FakeCuda
        cuda = FakeCuda()
        stream = cuda.stream()
        cuda.set_kernel_ns("slow", 5_000_000)
        with cuda.capture(stream) as graph:
            cuda.launch("slow", stream, grid=(4, 4, 1))
            cuda.copy(Copy.HOST_TO_DEVICE, 1024, stream)
            cuda.set_memory(1024, stream)
        executable = cuda.instantiate(graph)
        before_ns = cuda.now_ns()
        for _ in range(3):
            cuda.launch_graph(executable, stream)
        cuda.synchronize()
        print(15 <= (cuda.now_ns() - before_ns) / 1e6 < 15.1)
        """
    )
    assert printed == "True"


def test_program_gets_the_result_of_a_failed_call(run: Run) -> None:
    printed = run(
        """
        from fake_cuda import CudaError, FakeCuda
        cuda = FakeCuda()
        cuda.fail("cuLaunchKernel", 719)
        try:
            cuda.launch("k")
        except CudaError as error:
            print(error)
        cuda.fail("cuLaunchKernel", 0)
        cuda.launch("k")
        """
    )
    assert printed == "cuLaunchKernel: 719"


def test_forked_child_cannot_use_cuda(run: Run) -> None:
    printed = run(
        """
        import os
        from fake_cuda import CudaError, FakeCuda
        cuda = FakeCuda()
        child = os.fork()
        if child == 0:
            try:
                cuda.launch("k")
            except CudaError as error:
                os._exit(error.result)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        cuda.launch("k")
        """
    )
    assert printed == "3"


def test_injection_library_is_called_once_inside_init(run: Run, tmp_path: Path) -> None:
    source = tmp_path / "injection.c"
    source.write_text(
        '#include <stdio.h>\nint InitializeInjection(void) { puts("injected"); fflush(stdout); return 1; }\n'
    )
    library = tmp_path / "libinjection.so"
    subprocess.run([os.environ.get("CC", "cc"), "-shared", "-fPIC", str(source), "-o", str(library)], check=True)
    program = "from fake_cuda import FakeCuda\nFakeCuda()\nFakeCuda()\nprint('ready')\n"
    assert run(program, CUDA_INJECTION64_PATH=str(library)).split() == ["injected", "ready"]


def test_launches_come_from_threads_without_python(run: Run) -> None:
    printed = run(
        """
        from fake_cuda import FakeCuda
        cuda = FakeCuda()
        cuda.set_kernel_ns("k", 1_000_000)
        before_ns = cuda.now_ns()
        cuda.launch_on_native_thread("k", 20)
        cuda.synchronize()
        print(20 <= (cuda.now_ns() - before_ns) / 1e6 < 20.1)
        """
    )
    assert printed == "True"


def test_a_launch_is_cheap_enough_for_millions(run: Run) -> None:
    printed = run(
        """
        import time
        from fake_cuda import FakeCuda
        cuda = FakeCuda()
        launches = 200_000
        costs_ns = []
        for _ in range(5):
            start_ns = time.thread_time_ns()
            cuda.launch_many("k", launches)
            costs_ns.append((time.thread_time_ns() - start_ns) / launches)
            cuda.synchronize()
        print(min(costs_ns))
        """
    )
    assert float(printed) < 500


def test_each_run_is_told_of_itself(record: Record) -> None:
    for name in ("first", "second"):
        assert kernels(record(f"gpu.launch({name!r})").main) == {name: 1}
