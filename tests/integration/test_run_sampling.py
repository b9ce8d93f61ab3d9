"""Instruction sampling, from the fake GPU to the lines of a real cubin."""

from __future__ import annotations

import subprocess
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from bragg import load
from bragg.model import FrameKind, Profile
from tests.support.fake_gpu_runs import START, Record, kernels

CUBIN = Path(__file__).parents[1] / "golden" / "cubins" / "triton-3.9-softmax-sm90.cubin"
# A kernel of 2^20 ns on the fake's 4 multiprocessors has 2^10 samples at a period of 2^12.
SAMPLES = 1 << 10
LAUNCH = f"""
import time
from sampling import sampling, wait_for
gpu.load(open({str(CUBIN)!r}, "rb").read(), "softmax")
gpu.set_kernel_ns("softmax", 1 << 20)
gpu.set_knob("vary_ns", 0)
def softmax(scope, count):
    with bragg.scope(scope):
        for _ in range(count): gpu.launch("softmax", grid=(64, 1, 1))
    gpu.synchronize()
"""


@pytest.fixture
def sampled(record: Record) -> Record:
    """`record`, for programs that launch a kernel of the cubin and are sampled."""
    return partial(record, start=START + LAUNCH, sample="continuous", sample_period=12, CLOCK="real")


def samples(profile: Profile, scope: str, metric: str = "num_samples") -> int:
    """A metric of all that is below a scope."""
    nodes = [node for node in range(len(profile.tree)) if profile.tree.label(node) == scope]
    return sum(int(profile.inclusive(metric)[node]) for node in nodes)


def line_paths(profile: Profile) -> dict[str, int]:
    """Samples by path of lines below the kernel: `18 > +0x0`."""
    tree, own = profile.tree, profile.own("num_samples")
    found: dict[str, int] = {}
    for node in np.flatnonzero(own):
        steps = [step for step in tree.path(node) if tree.kind[step] == FrameKind.LINE]
        rows = [int(tree.frame[step]) for step in steps]
        text = " > ".join(str(tree.frames.line[row] or tree.frames.name[row]) for row in rows)
        found[text] = found.get(text, 0) + int(own[node])
    return found


def test_samples_of_one_call_path_are_exactly_its_and_lie_on_the_lines_of_the_cubin(sampled: Record) -> None:
    run = sampled('softmax("model", 10)')
    profile = run.main
    profile.check()
    assert samples(profile, "model") == profile.total("num_samples") == 10 * SAMPLES
    assert profile.meta["sampling"]["exact"] == 10 * SAMPLES
    assert "num_samples_apportioned" not in profile.metrics
    each = 10 * SAMPLES // 16
    paths = line_paths(profile)
    assert paths["18 > +0x0"] == paths["20 > +0x10"] == paths["21 > +0x20"] == each
    assert profile.total("stalled_long_scoreboard") == profile.total("stalled_barrier") == 4 * each
    assert profile.total("stalled_selected") == 4 * each
    assert profile.total("num_stalled_samples") == 12 * each
    assert kernels(profile)["model/softmax"] == 10
    assert "10,240 instruction samples (100.0 % exact), one in 2^12 cycles" in run.talk


def test_values_of_own_metrics_stay_where_they_are_beside_samples(sampled: Record) -> None:
    profile = sampled('with bragg.scope("model", metrics={"loss": 0.0}): softmax("layer", 10)').main
    assert samples(profile, "model") == 10 * SAMPLES
    (node,) = np.flatnonzero(profile.metrics["loss"].has_value).tolist()
    assert profile.tree.label(node) == "model"


def test_samples_of_two_call_paths_are_shared_out_by_gpu_time(sampled: Record) -> None:
    profile = sampled('for _ in range(50): softmax("small", 1); softmax("large", 3)').main
    total = profile.total("num_samples")
    assert total == 200 * SAMPLES
    # Where a window of attribution ends need not be where a round does.
    assert samples(profile, "small") == pytest.approx(total / 4, abs=total / 20)
    assert samples(profile, "large", "num_samples_apportioned") == pytest.approx(total * 3 / 4, abs=total / 10)
    assert profile.meta["sampling"]["exact"] < total / 10


@pytest.mark.parametrize("mode", ["continuous", "windows", "serialized"])
def test_the_first_launch_waits_until_it_is_sampled(sampled: Record, mode: str) -> None:
    assert sampled('softmax("only", 1)', sample=mode).main.total("num_samples") == SAMPLES


def test_serialized_launches_of_threads_are_told_apart(sampled: Record) -> None:
    program = """
    import threading
    def work(scope):
        gpu.use_device(0)
        softmax(scope, 20)
    threads = [threading.Thread(target=work, args=(scope,)) for scope in ("first", "second")]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
    """
    profile = sampled(program, sample="serialized").main
    assert (samples(profile, "first"), samples(profile, "second")) == (20 * SAMPLES, 20 * SAMPLES)
    assert profile.meta["sampling"]["exact"] == 40 * SAMPLES


def test_serialized_samples_belong_to_their_launches(sampled: Record) -> None:
    program = 'softmax("small", 4); gpu.set_kernel_ns("softmax", 1 << 22); softmax("large", 4)'
    profile = sampled(program, sample="serialized").main
    assert (samples(profile, "small"), samples(profile, "large")) == (4 * SAMPLES, 16 * SAMPLES)
    assert profile.meta["sampling"]["exact"] == 20 * SAMPLES


def test_kernels_of_one_name_are_told_apart_by_their_cubin(sampled: Record) -> None:
    program = f"""
    other = open({str(CUBIN)!r}, "rb").read().replace(b"kernels.py", b"special.py")
    softmax("first", 4)
    gpu.load(other, "softmax")
    gpu.set_kernel_ns("softmax", 1 << 20)
    softmax("second", 2)
    """
    profile = sampled(program).main
    assert (samples(profile, "first"), samples(profile, "second")) == (4 * SAMPLES, 2 * SAMPLES)
    assert profile.meta["sampling"]["exact"] == 6 * SAMPLES
    tree, own = profile.tree, profile.own("num_samples")
    files = {
        tree.frames.name[tree.frame[tree.path(node)[1]]]: tree.frames.file[tree.frame[tree.path(node)[3]]]
        for node in np.flatnonzero(own)
    }
    assert files == {"first": "/kernels/kernels.py", "second": "/kernels/special.py"}


def test_a_full_buffer_is_told_and_sampling_goes_on_at_a_longer_period(sampled: Record) -> None:
    program = """
    softmax("model", 4)
    wait_for(lambda found: found["devices"]["0"]["restarts"] == 1)
    softmax("after", 2)
    """
    run = sampled(program, SAMPLE_BUFFER=3 * SAMPLES)
    device = run.main.meta["sampling"]["devices"]["0"]
    assert device["restarts"] == 1
    assert device["period"] == 14
    # What was sampled before was lost with the buffer, but its kernels may have a share of what came later.
    assert samples(run.main, "model") + samples(run.main, "after") >= 2 * SAMPLES // 4
    assert samples(run.main, "after") > 0
    assert "the sample buffer of GPU 0 was full" in run.talk


def test_windows_tell_what_they_cost(sampled: Record) -> None:
    program = """
    while sampling().get("cycle", {}).get("windows", 0) < 3: softmax("model", 10); time.sleep(0.002)
    """
    run = sampled(program, sample="windows", sample_budget="50%")
    cycle = run.main.meta["sampling"]["cycle"]
    assert cycle["budget"] == 0.5
    assert cycle["windows"] >= 2
    assert 0 < run.main.total("num_samples") < kernels(run.main)["model/softmax"] * SAMPLES
    assert "windows cost" in run.talk


@pytest.mark.parametrize(
    ("result", "says"), [(35, "RmProfilingAdminOnly"), (43, "MIG"), (45, "WSL"), (27, "compute capability 7.5")]
)
def test_a_run_goes_on_without_samples_where_the_driver_refuses(sampled: Record, result: int, says: str) -> None:
    run = sampled('softmax("model", 3)', FAIL=f"cuptiPCSamplingEnable={result}")
    assert run.exit_code == 0
    assert kernels(run.main)["model/softmax"] == 3
    assert "num_samples" not in run.main.metrics
    assert says in run.talk


@pytest.mark.parametrize(
    "call",
    ["SetConfigurationAttribute", "GetNumStallReasons", "GetStallReasons", "Start", "GetData"],
)
def test_a_run_goes_on_where_a_call_of_the_sampler_fails(sampled: Record, call: str) -> None:
    run = sampled('softmax("model", 3)', FAIL=f"cuptiPCSampling{call}=999")
    assert run.exit_code == 0
    assert kernels(run.main)["model/softmax"] == 3
    assert "instructions of GPU 0 were not sampled: CUPTI says:" in run.talk


def test_counters_that_another_process_uses_are_left_to_it(sampled: Record) -> None:
    run = sampled('softmax("model", 3)', COUNTERS_BUSY="1")
    assert run.exit_code == 0
    assert kernels(run.main)["model/softmax"] == 3
    assert "num_samples" not in run.main.metrics
    assert "another process uses its counters" in run.talk


def test_one_process_at_a_time_samples_a_gpu(sampled: Record) -> None:
    program = """
    import os, subprocess, sys
    if "SECOND" not in os.environ:
        softmax("first", 4)
        subprocess.run([sys.executable, __file__], env={**os.environ, "SECOND": "1"}, check=True)
        softmax("first", 4)
    else:
        softmax("second", 3)
    """
    run = sampled(program, GPUS="shared")
    assert (run.exit_code, len(run.profiles)) == (0, 2)
    assert samples(run.main, "first") == run.main.total("num_samples") == 8 * SAMPLES
    assert kernels(run.profiles[1])["second/softmax"] == 3
    assert "num_samples" not in run.profiles[1].metrics
    assert f"process {run.main.meta['pid']} samples it" in run.talk


def test_a_gpu_that_could_not_be_sampled_is_sampled_once_it_can(record: Record, tmp_path: Path) -> None:
    program = """
    def recorded(name, result):
        gpu.fail("cuptiPCSamplingStart", result)
        session = bragg.start(f"{name}.bragg", backend="cuda", sampling="continuous", sample_period=12)
        softmax(name, 4)
        bragg.stop(session)
    recorded("refused", 999)
    recorded("sampled", 0)
    """
    record(program, START + LAUNCH, CLOCK="real")
    assert "num_samples" not in load(tmp_path / "refused.bragg").metrics
    assert load(tmp_path / "sampled.bragg").total("num_samples") == 4 * SAMPLES


def test_other_contexts_of_a_gpu_are_counted(sampled: Record) -> None:
    program = """
    import ctypes
    softmax("first", 4)
    gpu.call("cuCtxCreate_v2", ctypes.byref(ctypes.c_void_p()), ctypes.c_uint(0), ctypes.c_int(0))
    gpu.launch("elsewhere")
    wait_for(lambda found: found["other_contexts"] == 1)
    """
    run = sampled(program)
    assert samples(run.main, "first") == run.main.total("num_samples") == 4 * SAMPLES
    assert "1 CUDA context not sampled: only one of each GPU can be" in run.talk


def test_an_old_cupti_is_told(sampled: Record) -> None:
    run = sampled('softmax("model", 3)', OMIT="cuptiPCSamplingGetData")
    assert kernels(run.main)["model/softmax"] == 3
    assert "CUPTI 12.4 or later" in run.talk


def test_a_bare_option_means_continuous_and_leaves_the_target_alone() -> None:
    command = [sys.executable, "-m", "bragg", "run", "--backend=cpu", "--sample", "-m", "this", "--sample"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert "Beautiful is better than ugly" in done.stdout
