"""GPU programs, recorded through the fake driver and the fake CUPTI: the core's own path from dlopen to the profile."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from bragg import load
from bragg.model import FrameKind, TrackKind
from tests.support.fake_gpu_runs import START, Record, kernels, statistics
from tests.support.native_program import build_native_program
from tests.support.runs import FLUSHED


def test_kernels_copies_and_sets_are_counted_under_their_scopes(record: Record) -> None:
    run = record(
        """
        with bragg.scope("forward"):
            for _ in range(30): gpu.launch("matmul")
            with bragg.scope("load"):
                for _ in range(5): gpu.copy(Copy.HOST_TO_DEVICE, 4096)
        for _ in range(7): gpu.set_memory(64)
        gpu.synchronize()
        """
    )
    assert kernels(run.main) == {"forward/matmul": 30, "forward/load/copy HtoD": 5, "set": 7}
    assert run.main.inclusive("gpu_bytes")[0] == 5 * 4096 + 7 * 64
    assert run.main.meta["cuda"]["state"] == "attached"
    assert statistics(run)["unattributed_records"] == 0


def test_times_are_those_of_the_device(record: Record) -> None:
    run = record(
        """
        gpu.set_kernel_ns("long", 5_000_000)
        for _ in range(3): gpu.launch("long")
        gpu.synchronize()
        """,
        VARY_NS=0,
    )
    node = int(np.argmax(run.main.tree.kind == FrameKind.KERNEL))
    assert run.main.own("gpu_time")[node] == 15_000_000
    assert run.main.own("gpu_time_min")[node] == run.main.own("gpu_time_max")[node] == 5_000_000
    assert run.main.meta["gpu_busy_ns"] == {"0": 15_000_000}
    curve = run.main.meta["gpu_activity"]["0"]
    assert (sum(curve["busy_ns"]), sum(curve["launches"])) == (15_000_000, 3)
    assert curve["start_ns"] == run.main.meta["gpu_first_ns"]


@pytest.mark.parametrize("version", ["12.4", "12.6", "12.8", "12.9", "13.0", "13.1", "13.3", "13.5"])
def test_every_release_of_cupti_is_read(record: Record, version: str) -> None:
    run = record(
        """
        for _ in range(10_000): gpu.launch("k", grid=(7, 2, 1), block=(64, 1, 1))
        gpu.copy(Copy.DEVICE_TO_HOST, 10)
        gpu.synchronize()
        """,
        CUPTI_VERSION=version,
    )
    assert kernels(run.main) == {"k": 10_000, "copy DtoH": 1}
    assert run.main.meta["cuda"]["unread_bytes"] == 0
    configurations = run.main.kernels
    assert (configurations.grid_x[0], configurations.grid_y[0], configurations.block_x[0]) == (7, 2, 64)


def test_python_call_paths_lead_to_kernels(record: Record) -> None:
    run = record(
        """
        def layer():
            gpu.launch("matmul")
        def model():
            with bragg.scope("block"):
                for _ in range(4): layer()
        model()
        gpu.synchronize()
        """,
        context="python",
    )
    path = "<module>/model/block/model/layer/FakeCuda.launch/FakeCuda.call/matmul"
    assert kernels(run.main) == {path if sys.version_info >= (3, 11) else path.replace("FakeCuda.", ""): 4}


@pytest.mark.parametrize("context", ["python", "native"])
def test_what_opened_a_scope_is_above_it_once_however_many_helpers_that_took(record: Record, context: str) -> None:
    run = record(
        """
        def enter(scope, helpers):
            enter(scope, helpers - 1) if helpers else scope.__enter__()
        def work():
            gpu.launch("matmul")
        def model(helpers):
            scope = bragg.scope(f"block{helpers}")
            enter(scope, helpers)
            work()
            scope.__exit__(None, None, None)
        for helpers in (0, 8): model(helpers)
        gpu.synchronize()
        """,
        context=context,
    )
    paths = [path.split("/") for path in kernels(run.main)]
    assert [path[: path.index("work")] for path in paths] == [
        ["<module>", "model", *["enter"] * (helpers + 1), f"block{helpers}", "model"] for helpers in (0, 8)
    ]


def test_a_trace_has_a_lane_for_every_stream_and_device_and_flows_from_launch_to_kernel(record: Record) -> None:
    run = record(
        """
        for device in (0, 1):
            gpu.use_device(device)
            for stream in (gpu.stream(), gpu.stream()):
                for _ in range(6): gpu.launch("k", stream)
            gpu.synchronize()
        """,
        data="trace",
        DEVICES=2,
    )
    profile = run.main
    on_gpu = profile.tracks.kind[profile.slices.track] == TrackKind.GPU_STREAM
    lanes, counts = np.unique(profile.slices.track[on_gpu], return_counts=True)
    assert counts.tolist() == [6, 6, 6, 6]
    assert sorted(profile.tracks.device[lanes].tolist()) == [0, 0, 1, 1]
    assert len(profile.flows) == 24
    kernel = profile.tree.kind == FrameKind.KERNEL
    assert profile.own("gpu_count")[kernel].tolist() == [12, 12]
    assert profile.tree.frames.device[profile.tree.frame[kernel]].tolist() == [0, 1]


def test_graph_replays_are_counted_under_the_scope_of_the_launch(record: Record) -> None:
    run = record(
        """
        stream = gpu.stream()
        with bragg.scope("capture"), gpu.capture(stream) as graph:
            for _ in range(20): gpu.launch("node", stream)
        executable = gpu.instantiate(graph)
        with bragg.scope("replay"):
            for _ in range(50): gpu.launch_graph(executable, stream)
        gpu.synchronize()
        """
    )
    assert kernels(run.main) == {"replay/<captured_at>/capture/node": 1000}


def test_threads_launch_at_once(record: Record) -> None:
    run = record(
        """
        import threading
        def work(number):
            gpu.use_device(0)
            stream = gpu.stream()
            with bragg.scope(f"thread {number}"):
                for _ in range(2000): gpu.launch("k", stream)
        threads = [threading.Thread(target=work, args=[i]) for i in range(4)]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
        gpu.synchronize()
        """
    )
    assert kernels(run.main) == {f"thread {number}/k": 2000 for number in range(4)}
    assert statistics(run)["dropped_events"] == 0


def test_a_process_that_forks_before_cuda_is_recorded_on_both_sides(record: Record) -> None:
    run = record(
        """
        import os, sys
        child = os.fork()
        gpu = FakeCuda()
        with bragg.scope("parent" if child else "child"):
            for _ in range(9): gpu.launch("k")
        gpu.synchronize()
        if child: sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        """,
        start="import bragg\nfrom fake_cuda import FakeCuda\n",
    )
    assert run.exit_code == 0
    assert sorted(path for profile in run.profiles for path in kernels(profile)) == ["child/k", "parent/k"]


SLOW_CLOCK = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
int pthread_setname_np(pthread_t thread, const char *name) {
  if (strcmp(name, "bragg writer") == 0) sleep(4); /* else it waits for the clock, and the fork for its lock */
  return 0;
}
FILE *fopen(const char *path, const char *mode) {
  if (strstr(path, "current_clocksource") != NULL) {
    close(open("looking", O_CREAT | O_WRONLY, 0600));
    usleep(2000000);
  }
  return ((FILE *(*)(const char *, const char *))dlsym(RTLD_NEXT, "fopen"))(path, mode);
}
"""


def test_a_fork_while_a_thread_of_the_recorder_looks_at_the_clock_leaves_a_child_that_ends(
    record: Record, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, library = tmp_path / "slow_clock.c", tmp_path / "libslow_clock.so"
    source.write_text(SLOW_CLOCK)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
    monkeypatch.setenv("LD_PRELOAD", str(library))
    run = record(
        """
        import os, sys, time
        until = time.monotonic() + 60
        while not os.path.exists("looking") and time.monotonic() < until: time.sleep(0.01)
        child = os.fork()
        with bragg.scope("parent" if child else "child"): pass
        if not child: sys.exit(0)
        while (ended := os.waitpid(child, os.WNOHANG)) == (0, 0) and time.monotonic() < until: time.sleep(0.05)
        if ended == (0, 0): os.kill(child, 9)
        sys.exit(0 if ended == (child, 0) else 7)
        """,
        start="import bragg\n",
    )
    assert run.exit_code == 0
    labels = [profile.tree.label(node) for profile in run.profiles for node in range(len(profile.tree))]
    assert sorted({"parent", "child"}.intersection(labels)) == ["child", "parent"]


def test_a_killed_process_loses_nothing_that_was_flushed(record: Record) -> None:
    run = record(
        """
        import os, signal
        from flushed import wait_until_flushed
        with bragg.scope("work"):
            for _ in range(500): gpu.launch("k")
            gpu.synchronize()
        wait_until_flushed("k", "gpu_count", 500)
        os.kill(os.getpid(), signal.SIGKILL)
        """,
        flush_interval=100,
    )
    assert run.exit_code == -signal.SIGKILL
    assert kernels(run.main) == {"work/k": 500}
    assert not run.main.meta["capture"]["complete"]


def test_a_program_without_python_is_recorded(tmp_path: Path, record: Record, fakes_directory: Path) -> None:
    body = "for (int i = 0; i < 12; ++i) launch();\nreturn cuCtxSynchronize() ? 9 : 5;"
    program = build_native_program(tmp_path, fakes_directory, body)
    run = record("", command=["--", program], gpu_api="sync")
    assert run.exit_code == 5
    assert kernels(run.main) == {"native": 12}
    assert run.main.tree.label(int(np.argmax(run.main.own("sync_time")))) == "cuCtxSynchronize"


def test_several_sessions_record_what_ran_while_they_were_active(record: Record, tmp_path: Path) -> None:
    record(
        """
        a = bragg.start("a.bragg", backend="cuda", context="shadow")
        gpu.launch("both")
        b = bragg.start("b.bragg", backend="cuda", context="shadow")
        gpu.launch("both")
        a.deactivate()
        gpu.launch("only b")
        a.activate()
        gpu.launch("both")
        bragg.stop(b)
        gpu.launch("only a")
        bragg.stop(a)
        """
    )
    assert kernels(load(tmp_path / "a.bragg")) == {"both": 3, "only a": 1}
    assert kernels(load(tmp_path / "b.bragg")) == {"both": 2, "only b": 1}


LAUNCHES = """
for _ in range(3000): gpu.launch("k")
gpu.synchronize()
"""


LATE = """
import time
from pathlib import Path
import bragg
from fake_cuda import FakeCuda
gpu = FakeCuda()
gpu.launch("before")
until = time.monotonic() + 60
while "libcupti" not in Path("/proc/self/maps").read_text() and time.monotonic() < until: time.sleep(0.01)
time.sleep(0.1)
for _ in range(30): gpu.launch("after")
gpu.synchronize()
"""


@pytest.mark.parametrize("owner", ["bragg", "other"])
def test_what_a_foreign_injection_hides_at_the_start_is_told(
    record: Record, owner: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if owner == "other":
        source, library = tmp_path / "other.c", tmp_path / "libother.so"
        source.write_text("void InitializeInjection(void) {}")
        subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source], check=True)
        monkeypatch.setenv("CUDA_INJECTION64_PATH", str(library))
    run = record("", LATE)
    assert kernels(run.main)["after"] == 30
    missed_ns = run.main.meta["cuda"]["missed_start_ns"]
    if owner == "bragg":
        assert (kernels(run.main)["before"], missed_ns) == (1, 0)
    else:
        assert "before" not in kernels(run.main)
        assert 0 < missed_ns < run.main.meta["stopped_ns"] - run.main.meta["started_ns"]
        assert "ms is missing (another tool owns CUDA_INJECTION64_PATH), so sums are too low" in run.talk


def test_dropped_records_are_counted_and_told(record: Record) -> None:
    run = record(LAUNCHES, DROP_EVERY=10)
    assert kernels(run.main)["k"] == 2700
    assert run.main.meta["cuda"]["dropped_records"] == 300


def test_records_that_another_tool_asked_for_hide_none(record: Record) -> None:
    run = record(LAUNCHES, FOREIGN_EVERY=10)
    assert kernels(run.main)["k"] == 3000
    assert run.main.meta["cuda"]["foreign_records"] == 300
    assert run.main.meta["cuda"]["unread_bytes"] == 0


@pytest.mark.parametrize("fault", ["ZERO_TIMESTAMPS_EVERY", "UNKNOWN_END_EVERY", "END_BEFORE_START_EVERY"])
def test_records_without_an_interval_are_counted_and_not_timed(record: Record, fault: str) -> None:
    run = record(LAUNCHES, **{fault: 10})
    assert kernels(run.main)["k"] == 2700
    assert statistics(run)["bad_timestamps"] == 300


FULL_DISK = """
import os, resource
from pathlib import Path
for _ in range(100): gpu.launch("early")
gpu.synchronize()
wait_until_flushed("early", "gpu_count", 100)
(capture,) = Path(os.environ["BRAGG_CAPTURE_DIR"]).glob("*.part")
resource.setrlimit(resource.RLIMIT_FSIZE, (capture.stat().st_size, -1))
for _ in range(3000): gpu.launch("late")
gpu.synchronize()
"""


def test_a_capture_that_cannot_be_written_on_is_told_without_a_summary(record: Record) -> None:
    run = record(FLUSHED + FULL_DISK, START, "--no-summary", flush_interval=20, data="trace")
    assert run.exit_code == 0
    assert kernels(run.main) == {"early": 100}
    what = "the capture could not be written to its end"
    assert f"warning: {what} (File too large), so sums are too low\n" in run.talk
    assert f"incomplete: {what}, sums are too low" in run.talk


@pytest.mark.parametrize("most_bytes", [10_000, 1])
def test_a_capture_that_cannot_be_written_at_all_is_not_called_empty(record: Record, most_bytes: int) -> None:
    limit = f"import resource; resource.setrlimit(resource.RLIMIT_FSIZE, ({most_bytes}, {most_bytes}))"
    # Flushed once, at the end: an early flush of few launches would fit.
    run = record(f"{limit}\n{LAUNCHES.replace('3000', '100_000')}", data="trace", flush_interval=60_000)
    assert (run.exit_code, run.profiles) == (0, [])
    assert "could not be written (File too large)" in run.talk


def test_a_record_that_comes_twice_counts_once(record: Record) -> None:
    run = record('with bragg.scope("s"):' + LAUNCHES.replace("\n", "\n    "), DUPLICATE_EVERY=10)
    assert kernels(run.main) == {"s/k": 3000}
    assert (statistics(run)["duplicate_records"], statistics(run)["unattributed_records"]) == (300, 0)


def test_records_without_a_launch_are_kept_at_the_root(record: Record) -> None:
    run = record('with bragg.scope("s"):' + LAUNCHES.replace("\n", "\n    "), ZERO_CORRELATION_EVERY=10)
    assert kernels(run.main) == {"s/k": 2700, "k": 300}
    assert statistics(run)["unattributed_records"] == 300


def test_records_in_any_order_are_joined(record: Record) -> None:
    run = record('with bragg.scope("s"):' + LAUNCHES.replace("\n", "\n    "), REORDER_EVERY=3)
    assert kernels(run.main) == {"s/k": 3000}


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"SLOT_TAKEN": 1, "SLOT_HOLDER": "other-profiler"}, r"another tool holds .* \(other-profiler\)"),
        ({"FAIL": "cuptiSubscribe=35"}, "no permission to profile"),
        ({"FAIL": "cuptiActivityEnable=999"}, "CUPTI refused"),
        ({"FAIL": "cuptiGetVersion=999"}, "999"),
    ],
)
def test_a_backend_that_cannot_attach_says_why_and_scopes_are_recorded(
    record: Record, settings: dict[str, object], reason: str
) -> None:
    run = record('with bragg.scope("s"): gpu.launch("k")', **settings)
    assert run.exit_code == 0
    assert run.main.meta["cuda"]["state"] == "failed"
    assert re.search(reason, run.main.meta["cuda"]["reason"])
    assert re.search(f"bragg: no GPU times: .*{reason}", run.talk)
    assert "s" in run.main.tree.frames.name


def test_deep_python_is_no_sign_of_cold_caches_which_make_records_dear(record: Record) -> None:
    program = """
        def below(depth):
            if depth: return below(depth - 1)
            for _ in range(10_000): gpu.launch("k")
        below(500)
        gpu.synchronize()
        """

    def is_below_the_most() -> bool:
        told = record(program, context="python").main.meta["overhead"]
        assert told["launches_ns"] > 400 * told["launches_calls"]
        return bool(told["records_ns"] < 1_800 * told["records_calls"])

    assert any(is_below_the_most() for _ in range(3))  # other programs on the machine make caches cold, too
