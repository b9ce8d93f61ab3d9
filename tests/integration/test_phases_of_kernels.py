"""Phases of a recording of the fake GPU: which phase a kernel belongs to, and when a phase is complete."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from textwrap import dedent

import pytest

from tests.support import fake_cuda
from tests.support.fake_gpu_runs import SUPPORT

Run = Callable[..., list[str]]

pytestmark = pytest.mark.usefixtures("here")


@pytest.fixture
def on_gpu(tmp_path: Path, fakes_directory: Path) -> Run:
    """Runs a program with a session on `gpu`, a fake one; gives the lines that it printed."""

    def run(body: str, **settings: object) -> list[str]:
        start = """
        import time, threading, bragg
        from fake_cuda import Copy, FakeCuda
        gpu = FakeCuda()
        def counts(profile):
            nodes = [node for node in range(len(profile.tree)) if profile.own("gpu_count")[node]]
            return {profile.tree.label(node): int(profile.own("gpu_count")[node]) for node in nodes}
        def when(condition):
            until = time.monotonic() + 60
            while not condition(): assert time.monotonic() < until; time.sleep(0.005)
        """
        script = tmp_path / "program.py"
        script.write_text(dedent(start) + dedent(body))
        environ = {**os.environ, **fake_cuda.environment(fakes_directory, settings), "PYTHONPATH": str(SUPPORT)}
        done = subprocess.run(
            [sys.executable, script], env=environ, capture_output=True, text=True, timeout=100, check=False
        )
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout.splitlines()

    return run


def test_kernel_belongs_to_the_phase_it_was_launched_in(on_gpu: Run) -> None:
    printed = on_gpu(
        """
        gpu.set_kernel_ns("slow", 300_000_000)
        session = bragg.start("x", backend="cuda", context="shadow")
        with bragg.scope("first"): gpu.launch("slow")
        session.advance_phase()
        with bragg.scope("second"): gpu.launch("fast")
        print(session.is_phase_complete(0))
        gpu.synchronize()
        when(lambda: session.is_phase_complete(0))
        print(counts(session.phase_profile(0)), counts(session.phase_profile(1)))
        session.stop()
        """
    )
    assert printed == ["False", "{'slow': 1} {'fast': 1}"]


def test_waiting_for_the_gpu_completes_earlier_phases_and_not_the_current_one(on_gpu: Run) -> None:
    printed = on_gpu(
        """
        session = bragg.start("x", backend="cuda", context="shadow")
        stream = gpu.stream()
        with gpu.capture(stream) as graph: gpu.launch("node", stream); gpu.launch("node", stream)
        executable = gpu.instantiate(graph)
        for _ in range(3): gpu.launch_graph(executable, stream)
        gpu.launch("k")
        session.advance_phase()
        gpu.launch_graph(executable, stream)
        session.deactivate()
        print([session.is_phase_complete(phase) for phase in (0, 1)])
        print([counts(session.phase_profile(phase)) for phase in (0, 1)] == [{"node": 6, "k": 1}, {"node": 2}])
        session.stop()
        """
    )
    assert printed == ["[True, False]", "True"]


def test_phases_of_graphs_and_copies_complete_without_waiting_for_the_gpu(on_gpu: Run) -> None:
    printed = on_gpu(
        """
        session = bragg.start("x", backend="cuda", context="shadow")
        stream = gpu.stream()
        with gpu.capture(stream) as graph:
            for _ in range(50): gpu.launch("node", stream)
        executable = gpu.instantiate(graph)
        session.restart_phase()
        for _ in range(40):
            gpu.launch_graph(executable, stream)
            gpu.copy(Copy.HOST_TO_DEVICE, 64, stream)
            session.advance_phase()
        when(lambda: session.is_phase_complete(39))
        print([counts(session.phase_profile(phase)) for phase in range(40)] == [{'node': 50, 'copy HtoD': 1}] * 40)
        session.stop()
        """,
        CLOCK="real",
    )
    assert printed == ["True"]


def test_lost_records_hold_up_no_program_that_advances(on_gpu: Run) -> None:
    printed = on_gpu(
        """
        session = bragg.start("x", backend="cuda", context="shadow")
        lasted = []
        for _ in range(60):
            gpu.launch_many("k", 100)
            began = time.monotonic()
            session.advance_phase()
            lasted.append(time.monotonic() - began)
        print(min(lasted) < 0.2, counts(session.stop(save=False)))  # 0.3 s where records are awaited
        """,
        CLOCK="real",
        DROP_EVERY=10,
    )
    assert printed == ["True {'k': 5400}"]


@pytest.mark.parametrize("data", ["tree", "trace"])
def test_threads_launch_while_phases_advance(on_gpu: Run, data: str) -> None:
    printed = on_gpu(
        f"""
        phases = bragg.start("x", backend="cuda", context="shadow", data="{data}")
        whole = bragg.start("whole", backend="cuda", context="shadow", data="{data}")
        def work(number):
            gpu.use_device(0)
            stream = gpu.stream()
            for step in range(30):
                with bragg.scope(f"thread {{number}}"): gpu.launch_many(f"k{{number}}", 50, stream)
                time.sleep(0.001)
        threads = [threading.Thread(target=work, args=[number]) for number in range(4)]
        for thread in threads: thread.start()
        while any(thread.is_alive() for thread in threads): phases.advance_phase(); time.sleep(0.001)
        united, one = phases.profile(), whole.profile()
        print(counts(united) == counts(one) == {{f"k{{number}}": 1500 for number in range(4)}})
        print(len(united.slices) == len(one.slices), len(united.tracks) == len(one.tracks))
        print(len(united.flows) == len(one.flows))
        phases.stop(save=False); whole.stop(save=False)
        """
    )
    assert printed == ["True", "True True", "True"]
