"""Calls of the CUDA runtime and driver as nodes, recorded through the fake driver and the fake CUPTI."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import bragg
from bragg.model import FrameKind, Profile
from tests.support.fake_gpu_runs import START, Record, kernels, path_of, statistics


def calls(profile: Profile) -> dict[str, int]:
    """How often each call was made, by path of names below the root."""
    tree, counts = profile.tree, profile.own("host_count")
    nodes = np.flatnonzero((tree.kind == FrameKind.GPU_API) & (counts > 0))
    return {path_of(profile, node): int(counts[node]) for node in nodes.tolist()}


def time_ms(profile: Profile, metric: str, name: str) -> float:
    """Inclusive time of the only node of that name."""
    (node,) = (node for node in range(len(profile.tree)) if profile.tree.label(node) == name)
    return float(profile.inclusive(metric)[node]) / 1e6


def test_kernels_are_below_the_call_that_the_program_made(record: Record) -> None:
    run = record(
        """
        import ctypes as c
        with bragg.scope("forward"):
            for _ in range(30): gpu.launch_by_runtime("matmul")
            for _ in range(3): gpu.launch("triton")
            gpu.call("cudaMemcpyAsync", None, None, c.c_size_t(64), 1, None)
        gpu.synchronize()
        """,
        gpu_api="all",
    )
    assert kernels(run.main) == {
        "forward/cudaLaunchKernel/matmul": 30,
        "forward/cuLaunchKernel/triton": 3,
        "forward/cudaMemcpyAsync/copy HtoD": 1,
    }
    assert {path: count for path, count in calls(run.main).items() if path.startswith("forward")} == {
        "forward/cudaLaunchKernel": 30,
        "forward/cuLaunchKernel": 3,
        "forward/cudaMemcpyAsync": 1,
    }
    assert calls(run.main)["cuCtxSynchronize"] == 1
    assert statistics(run)["unattributed_records"] == 0


def test_calls_that_only_ask_are_no_nodes(record: Record) -> None:
    run = record(
        """
        import ctypes as c
        with bragg.scope("ask"):
            for _ in range(5): gpu.call("cudaGetDevice", c.byref(c.c_int()))
            gpu.call("cudaMalloc", c.byref(c.c_uint64()), c.c_size_t(64))
        """,
        gpu_api="all",
    )
    assert [path for path in calls(run.main) if path.startswith("ask")] == ["ask/cudaMalloc"]


def test_time_that_calls_wait_for_the_gpu_belongs_to_the_path_that_waits(record: Record) -> None:
    run = record(
        """
        import ctypes as c
        gpu.set_kernel_ns("slow", 1_500_000_000)
        with bragg.scope("waits"):
            gpu.launch("slow")
            gpu.call("cudaDeviceSynchronize")
        with bragg.scope("copies"):
            gpu.launch("slow")
            gpu.call("cudaMemcpy", None, None, c.c_size_t(64), 2)
        gpu.set_kernel_ns("slow", 100_000_000)
        with bragg.scope("goes on"):
            gpu.launch("slow")
        """,
        gpu_api="sync",
        CLOCK="real",
    )
    assert kernels(run.main) == {"waits/slow": 1, "copies/slow": 1, "copies/cudaMemcpy/copy DtoH": 1, "goes on/slow": 1}
    assert calls(run.main) == {"waits/cudaDeviceSynchronize": 1, "copies/cudaMemcpy": 1}
    # The kernel runs from its launch on; on a busy machine the wait begins later.
    assert 100 <= time_ms(run.main, "sync_time", "waits") <= time_ms(run.main, "host_time", "waits")
    assert time_ms(run.main, "sync_time", "cudaMemcpy") == time_ms(run.main, "host_time", "cudaMemcpy") >= 100
    assert time_ms(run.main, "sync_time", "goes on") == 0


def test_asynchronous_copies_wait_if_the_memory_of_the_host_is_pageable(record: Record) -> None:
    run = record(
        """
        import ctypes as c
        with bragg.scope("to host"): gpu.call("cudaMemcpyAsync", None, None, c.c_size_t(64), 2, None)
        with bragg.scope("to device"): gpu.call("cudaMemcpyAsync", None, None, c.c_size_t(64), 1, None)
        """,
        gpu_api="sync",
    )
    assert kernels(run.main) == {"to host/cudaMemcpyAsync/copy DtoH": 1, "to device/cudaMemcpyAsync/copy HtoD": 1}
    (to_host,) = (n for n in range(len(run.main.tree)) if run.main.tree.label(n) == "to host")
    (waiting,) = np.flatnonzero(run.main.own("sync_time"))
    assert run.main.tree.parent[waiting] == to_host
    assert run.main.own("sync_time")[waiting] == run.main.own("host_time")[waiting]


def test_without_the_option_there_are_no_calls(record: Record) -> None:
    run = record("gpu.launch_by_runtime('k')\ngpu.call('cudaDeviceSynchronize')")
    assert kernels(run.main) == {"k": 1}
    assert "sync_time" not in run.main.metrics
    assert statistics(run)["api_calls"] == 0


def test_call_paths_of_python_lead_to_calls(record: Record) -> None:
    run = record("def step():\n    gpu.launch_by_runtime('k')\nstep()\nstep()", gpu_api="all", context="python")
    path = "<module>/step/FakeCuda.launch_by_runtime/FakeCuda.call/cudaLaunchKernel/k"
    assert kernels(run.main) == {path: 2}


def test_a_call_is_one_slice_that_leads_to_its_kernel(record: Record) -> None:
    run = record("gpu.launch_by_runtime('k')\ngpu.launch('k')\ngpu.synchronize()", gpu_api="all", data="trace")
    profile = run.main
    names = [profile.tree.frames.name[profile.tree.frame[node]] for node in profile.slices.node.tolist()]
    assert [names.count(name) for name in ("cudaLaunchKernel", "cuLaunchKernel", "k")] == [1, 1, 2]
    assert sorted(names[source] for source in profile.flows.source.tolist()) == ["cuLaunchKernel", "cudaLaunchKernel"]


def test_a_call_that_fails_is_counted_and_leaves_the_path(record: Record) -> None:
    run = record(
        """
        from fake_cuda import CudaError
        gpu.fail("cuLaunchKernel", 719)
        try: gpu.launch_by_runtime("k")
        except CudaError: gpu.fail("cuLaunchKernel", 0)
        with bragg.scope("after"): gpu.launch_by_runtime("k")
        """,
        gpu_api="all",
    )
    assert kernels(run.main) == {"after/cudaLaunchKernel/k": 1}
    assert calls(run.main)["cudaLaunchKernel"] == 1


def test_a_call_that_lasts_while_recording_pauses_is_not_taken_for_another(record: Record) -> None:
    run = record(
        """
        import threading, time
        session = bragg.start("inner.bragg", gpu_api="all", context="shadow")
        gpu.set_kernel_ns("slow", 3_000_000_000)
        gpu.launch("slow")
        ready = threading.Event()
        def wait():
            gpu.use_device(0)
            ready.set()
            with bragg.scope("waits"): gpu.call("cudaDeviceSynchronize")
            with bragg.scope("after"): gpu.launch_by_runtime("k")
        thread = threading.Thread(target=wait)
        thread.start()
        ready.wait()
        def slept():  # how often, if it does now
            lines = open(f"/proc/self/task/{thread.native_id}/status").read().splitlines()
            fields = dict(line.split(":", 1) for line in lines)
            return fields["State"].strip()[0] == "S" and fields["voluntary_ctxt_switches"]
        seen = []
        while thread.is_alive() and not (len(seen) > 10 and seen[-1] and len(set(seen[-10:])) == 1):
            seen.append(slept())
            time.sleep(0.01)  # in its call, once it has slept through ten of these
        session.deactivate(flush=False)
        session.activate()
        thread.join()
        session.stop()
        """,
        CLOCK="real",
    )
    assert kernels(run.main)["after/cudaLaunchKernel/k"] == 1
    assert "waits/cudaDeviceSynchronize" not in calls(run.main)


def test_what_the_recorder_itself_calls_is_not_shown(record: Record) -> None:
    run = record(
        """
        session = bragg.start("inner.bragg", gpu_api="all", context="shadow")
        with bragg.scope("work"): gpu.launch("k")
        session.profile()
        print(session.stop().tree.frames.name)
        """,
        gpu_api="all",
    )
    assert kernels(run.main) == {"work/cuLaunchKernel/k": 1}
    assert not [path for path in calls(run.main) if path.endswith("Synchronize")]


def test_forked_processes_have_calls_of_their_own(record: Record) -> None:
    run = record(
        """
        import os
        child = os.fork()
        import bragg
        from fake_cuda import FakeCuda
        gpu = FakeCuda()
        with bragg.scope("child" if child == 0 else "parent"):
            for _ in range(3 if child == 0 else 5): gpu.launch_by_runtime("k")
        if child == 0: raise SystemExit
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        late = os.fork()
        if late == 0:
            with bragg.scope("late"): pass
            raise SystemExit
        assert os.waitstatus_to_exitcode(os.waitpid(late, 0)[1]) == 0
        with bragg.scope("after"): gpu.launch_by_runtime("k")
        """,
        "",
        gpu_api="all",
    )
    assert run.exit_code == 0
    counts = [kernels(each) for each in run.profiles if "gpu_count" in each.metrics]
    assert sorted(counts, key=str) == [
        {"child/cudaLaunchKernel/k": 3},
        {"parent/cudaLaunchKernel/k": 5, "after/cudaLaunchKernel/k": 1},
    ]


def test_forked_process_does_not_follow_calls_for_a_session_that_it_has_not(record: Record, tmp_path: Path) -> None:
    run = record(
        f"""
        import os
        import bragg
        from fake_cuda import FakeCuda
        session = bragg.start({str(tmp_path / "of-parent.bragg")!r}, backend="cuda", context="shadow", gpu_api="all")
        child = os.fork()
        if child == 0: session = bragg.start({str(tmp_path / "of-child.bragg")!r}, backend="cuda", context="shadow")
        FakeCuda().launch_by_runtime("k")
        bragg.stop(session)
        if child != 0: assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        """,
        "",
    )
    assert run.exit_code == 0, run.talk
    assert kernels(bragg.load(tmp_path / "of-parent.bragg")) == {"cudaLaunchKernel/k": 1}
    assert kernels(bragg.load(tmp_path / "of-child.bragg")) == {"k": 1}


def test_tally_has_calls_work_and_copies_and_does_not_grow_with_the_run(record: Record, tmp_path: Path) -> None:
    def sizes(launches: int) -> int:
        run = record(
            f"""
            import ctypes as c
            with bragg.scope("step"):
                for _ in range({launches}): gpu.launch_by_runtime("matmul")
                gpu.call("cudaMemcpyAsync", None, None, c.c_size_t(64), 1, None)
            gpu.synchronize()
            """,
            START,
            "--tally",
            "--force",
        )
        assert run.exit_code == 0, run.talk
        rows = {line.split()[-1]: line.split() for line in run.talk.splitlines() if "  " in line}
        for name in ("cudaLaunchKernel", "matmul"):
            assert f"{launches:,}" in rows[name], run.talk
        for title in ("GPU API", "device", "memory traffic", "scopes"):
            assert title in run.talk.splitlines(), run.talk
        assert not len(run.main.slices)
        return (tmp_path / "out.bragg").stat().st_size

    assert sizes(20_000) < 2 * sizes(20)
