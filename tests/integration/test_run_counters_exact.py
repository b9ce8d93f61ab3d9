"""Launches that are counted one at a time, from the fake GPU to metrics of their nodes."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from bragg.analyze.causes.needs import OWN_HOST_TIME
from bragg.analyze.engine import HostTime
from bragg.analyze.report import answered
from bragg.registry import RULES
from bragg.views.text.run_facts import RunFacts
from tests.support.fake_gpu_runs import START, Record, kernels, values

# The fake's copy reads and writes 1,000 B in each ns, its matmul reads 100 and writes 50 and is busy by 90 %.
WORK = """
gpu.set_knob("vary_ns", 0)
gpu.set_kernel_ns("copy", 20_000)
gpu.set_kernel_ns("matmul", 50_000)
def work(count, *names):
    for _ in range(count):
        for name in names: gpu.launch(name)
    gpu.synchronize()
"""


@pytest.fixture
def counted(record: Record) -> Record:
    """`record`, for programs whose copies and matmuls are counted."""
    return partial(record, start=START + WORK, counters_exact="copy|matmul")


def test_the_first_launches_of_chosen_kernels_have_exact_values(counted: Record) -> None:
    run = counted('with bragg.scope("step"): work(5, "copy", "matmul", "softmax")')
    profile = run.main
    assert kernels(profile) == {"step/copy": 5, "step/matmul": 5, "step/softmax": 5}
    assert values(profile, "exact_count") == {"step/copy": 2, "step/matmul": 2}
    assert values(profile, "dram_read_bytes") == {"step/copy": 2 * 20_000_000, "step/matmul": 2 * 5_000_000}
    assert values(profile, "dram_bytes") == {"step/copy": 2 * 40_000_000, "step/matmul": 2 * 7_500_000}
    assert values(profile, "tensor_active_time") == {"step/matmul": 2 * 45_000}
    assert values(profile, "dram_counted_time") == {"step/copy": 2 * 20_000, "step/matmul": 2 * 50_000}
    assert values(profile, "occupancy_time") == {"step/copy": 20_000, "step/matmul": 50_000}
    assert values(profile, "gpu_time")["step/copy"] == 5 * 20_000  # without the second records of those counted
    assert "dram_bytes_error" not in profile.metrics
    assert "4 launches of 2 kernels counted one at a time; that took" in run.talk
    answer = answered(profile)  # the host waited for counting: nothing of it is said to be the program's
    assert answer.bounds.by in ("", "the GPU", "counting launches exactly")
    assert OWN_HOST_TIME in answer.analysis.skipped.values()
    assert not [each for each in answer.analysis.findings if RULES[each.rule].host_time is not HostTime.NOTHING]


@pytest.mark.parametrize(("launches", "count"), [(2, 4), (1, 3)])
def test_shapes_of_a_kernel_are_counted_each(counted: Record, launches: int, count: int) -> None:
    body = """
    for grid in (1, 2, 2, 2, 3): gpu.launch("copy", grid=(grid, 1, 1))
    gpu.synchronize()
    """
    assert values(counted(body, counters_exact_launches=launches).main, "exact_count") == {"copy": count}


def test_metrics_of_cupti_are_recorded_by_their_names(counted: Record) -> None:
    names = "dram_read,lts__t_sectors.sum,lts__t_sector_hit_rate.pct,lts__nonsense.sum"
    profile = counted('work(6, "copy")', counters_exact=f"copy,{names}").main
    assert values(profile, "lts__t_sectors.sum") == {"copy": 2 * 2_000 * 20_000 / 32}
    assert values(profile, "lts__t_sector_hit_rate.pct") == {"copy": 50}
    exact = profile.meta["exact_counters"]
    assert exact["devices"]["0"]["left_out"] == ["lts__nonsense.sum"]
    assert any("does not count" in line for line in RunFacts(profile.meta).warnings())
    assert "dram_bytes" not in profile.metrics  # only reads were asked for


def test_instructions_that_only_a_patched_kernel_counts_are_left_out(counted: Record) -> None:
    name = "smsp__sass_thread_inst_executed_op_fadd_pred_on.sum"
    profile = counted('work(6, "copy")', counters_exact=f"copy,dram_read,{name}").main
    assert profile.meta["exact_counters"]["devices"]["0"]["left_out"] == [name]
    assert name not in profile.metrics
    assert values(profile, "dram_read_bytes") == {"copy": 2 * 20_000_000}


EXECUTED, THREADS = "smsp__sass_inst_executed", "smsp__sass_thread_inst_executed_pred_on"


@pytest.mark.parametrize("names", [f"{EXECUTED}.sum,{THREADS}", "flop"])
def test_instructions_of_the_first_launches_are_counted_by_instruction(counted: Record, names: str) -> None:
    run = counted('work(5, "copy", "softmax")', counters_exact=f"copy,{names}")
    profile = run.main
    each = {profile.tree.frames.name[profile.tree.frame[node]]: node for node in np.flatnonzero(profile.own(EXECUTED))}
    assert {name: int(profile.own(EXECUTED)[node]) for name, node in each.items()} == {
        f"+{16 * number:#x}": 2 * (number + 1) for number in range(16)
    }
    assert int(profile.own(THREADS)[each["+0x0"]]) == 2 * 32
    assert int(profile.own(THREADS)[each["+0x10"]]) == 2 * 2 * 16  # half of the threads are off
    assert values(profile, "instruction_counted_launches") == {"copy": 2}
    assert kernels(profile) == {"copy": 3, "softmax": 5}  # those that are counted have no record
    assert "had not come" not in run.talk
    assert "num_samples" not in profile.metrics
    assert profile.meta["exact_counters"]["devices"]["0"]["sets"] == [[EXECUTED, THREADS]]


def test_instructions_and_counters_of_the_hardware_take_turns(counted: Record) -> None:
    profile = counted('work(9, "copy")\nwork(9, "matmul")', counters_exact=f"copy|matmul,dram_read,{EXECUTED}").main
    assert profile.meta["exact_counters"]["devices"]["0"]["left_out"] == []
    assert values(profile, "dram_read_bytes") == {"copy": 2 * 20_000_000, "matmul": 2 * 5_000_000}
    assert values(profile, "dram_counted_launches") == {"copy": 2, "matmul": 2}
    assert values(profile, "instruction_counted_launches") == {"copy": 2, "matmul": 2}
    assert profile.total(EXECUTED) == 2 * 2 * sum(range(1, 17))


def test_beside_instructions_the_hardware_counts_what_fits_one_pass(counted: Record) -> None:
    names = f"dram_read,sm__inst_executed_pipe_tensor.sum,{EXECUTED}"
    profile = counted('work(9, "copy")', counters_exact=f"copy,{names}", RANGE_PASS_METRICS=4).main
    device = profile.meta["exact_counters"]["devices"]["0"]
    assert device["left_out"] == ["sm__inst_executed_pipe_tensor.sum"]
    assert [len(names) for names in device["sets"]] == [2, 1]
    assert values(profile, "dram_read_bytes") == {"copy": 2 * 20_000_000}


@pytest.mark.parametrize("call", ["SetConfig=8", "Enable=8", "FlushData=999"])
def test_where_instructions_cannot_be_counted_kernels_are_timed(counted: Record, call: str) -> None:
    run = counted('work(9, "copy")', counters_exact=f"copy,{EXECUTED}", FAIL=f"cuptiSassMetrics{call}")
    assert kernels(run.main) == {"copy": 8 if "Flush" in call else 9}
    assert EXECUTED not in run.main.metrics
    assert run.main.meta["exact_counters"]["devices"]["0"]["left_out"] == [EXECUTED]
    assert run.talk.count("does not count instructions") == 1


def test_no_instructions_are_counted_while_a_stream_is_captured(counted: Record) -> None:
    body = """
    stream = gpu.stream()
    with gpu.capture(stream): gpu.launch("copy", stream)
    work(1, "softmax")
    """
    profile = counted(body, counters_exact=f"copy,{EXECUTED}").main  # the fake ends a program that does
    assert profile.meta["exact_counters"]["not_counted"] == {"captured": 1}


def test_counters_of_several_passes_take_turns_over_launches(counted: Record) -> None:
    run = counted('work(9, "copy", "matmul")\nwork(1, "copy_once")', RANGE_PASS_METRICS=4)
    profile = run.main
    assert profile.meta["exact_counters"]["devices"]["0"]["left_out"] == []
    sets = profile.meta["exact_counters"]["devices"]["0"]["sets"]
    assert [len(names) for names in sets] == [4, 4, 3]  # the duration is in each
    counts = [values(profile, f"{each}_counted_launches") for each in ("dram", "occupancy", "gpu_instructions")]
    assert [(each["copy"], each["matmul"]) for each in counts] == [(2, 2)] * 3
    assert sorted(each.get("copy_once", 0) for each in counts) == [0, 0, 1]
    assert values(profile, "exact_count") == {"copy": 6, "matmul": 6, "copy_once": 1}
    assert values(profile, "dram_read_bytes")["copy"] == 2 * 20_000_000
    assert values(profile, "tensor_active_time")["matmul"] == 2 * 45_000
    assert values(profile, "tensor_active_counted_time")["matmul"] == 2 * 50_000
    assert kernels(profile) == {"copy": 9, "matmul": 9, "copy_once": 1}
    assert "1 kernel ran too few launches for all counters" in "\n".join(RunFacts(profile.meta).warnings())


def test_a_metric_of_several_passes_is_counted_over_launches_of_one_kernel_and_shape(counted: Record) -> None:
    body = """
    for grid in (1, 2):
        for _ in range(12):
            gpu.launch("matmul", grid=(grid, 1, 1)); gpu.launch("copy"); gpu.synchronize()
    work(2, "matmul_seldom")
    """
    names = "dram_read,sm__inst_executed_pipe_tensor.sum,lts__t_sector_hit_rate.pct"
    run = counted(body, counters_exact=f"copy|matmul,{names}")
    profile, device = run.main, run.main.meta["exact_counters"]["devices"]["0"]
    assert (device["passes"], device["left_out"]) == ([1, 3, 2], [])
    # Of each shape two launches for reads, twice three for instructions, twice two for the hit rate.
    assert values(profile, "sm__inst_executed_pipe_tensor.sum")["matmul"] == 2 * 2 * 45_000 / 2
    assert values(profile, "sm__inst_executed_pipe_tensor.sum_counted_launches")["matmul"] == 2 * 2
    assert values(profile, "lts__t_sector_hit_rate.pct") == {"copy": 50, "matmul": 50}
    assert values(profile, "dram_read_bytes")["matmul"] == 2 * 2 * 5_000_000
    assert values(profile, "exact_count") == {"copy": 12, "matmul": 24, "matmul_seldom": 2}
    assert kernels(profile) == {"copy": 24, "matmul": 24, "matmul_seldom": 2}
    assert run.main.own("gpu_time").sum() == 24 * 20_000 + 24 * 50_000 + 2 * 1_000
    assert profile.meta["exact_counters"]["incomplete_kernels"] == 1


def test_a_pass_that_fails_ends_its_metric_alone(counted: Record) -> None:
    body = """
    work(2, "copy")
    gpu.fail("cuptiRangeProfilerSetConfig", 1)
    work(1, "copy")
    gpu.fail("cuptiRangeProfilerSetConfig", 0)
    work(2, "copy", "matmul")
    """
    run = counted(body, counters_exact="copy|matmul,dram_read,lts__t_sector_hit_rate.pct")
    device = run.main.meta["exact_counters"]["devices"]["0"]
    assert "reason" not in device
    assert device["left_out"] == ["lts__t_sector_hit_rate.pct"]
    assert "does not count lts__t_sector_hit_rate.pct, which takes 2 passes" in run.talk
    assert values(run.main, "dram_read_bytes") == {"copy": 2 * 20_000_000, "matmul": 2 * 5_000_000}
    assert values(run.main, "exact_count") == {"copy": 3, "matmul": 2}
    assert kernels(run.main) == {"copy": 5, "matmul": 2}


def test_what_cannot_be_counted_is_told_and_runs_as_before(counted: Record) -> None:
    body = """
    stream = gpu.stream()
    with gpu.capture(stream) as graph: gpu.launch("copy", stream)
    gpu.launch_graph(gpu.instantiate(graph), stream)
    work(2, "ncclDevKernel_copy")
    """
    run = counted(body)
    assert run.exit_code == 0
    assert sum(kernels(run.main).values()) == 3
    assert run.main.meta["exact_counters"]["not_counted"] == {"captured": 1, "communicates": 1}
    told = "\n".join(RunFacts(run.main.meta).warnings())
    assert "none of 1 kernel: a stream was captured into a graph" in told
    assert "none of 1 kernel: they wait for other GPUs" in told


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"FAIL": "cuptiRangeProfilerEnable=35"}, "NVreg_RestrictProfilingToAdminUsers=0"),
        ({"FAIL": "cuptiRangeProfilerStart=7"}, "in use, by another process or another tool"),
        ({"FAIL": "cuptiRangeProfilerDecodeData=999"}, "(decode)"),
        ({"COUNTERS_BUSY": "1"}, "HARDWARE_BUSY"),
        ({"FAIL": "cuptiProfilerHostInitialize=1"}, "does not know the counters of this GPU"),
        ({"OMIT": "cuptiRangeProfilerStart"}, "CUPTI 12.6 or later can"),
    ],
)
def test_a_gpu_that_refuses_is_told_and_kernels_are_timed(
    counted: Record, settings: dict[str, str], words: str
) -> None:
    run = counted('work(3, "copy")', **settings)
    assert run.exit_code == 0
    assert words in run.talk
    assert "no kernel was launched" not in run.talk
    assert "another thread launched at the same time" not in run.talk
    assert kernels(run.main) == {"copy": 3}
    assert "exact_count" not in run.main.metrics
    assert run.main.own("gpu_time").sum() == 3 * 20_000


def test_threads_that_launch_meanwhile_wait_and_are_not_counted(counted: Record) -> None:
    body = """
    import threading
    def other():
        gpu.use_device(0)
        stream = gpu.stream()
        for _ in range(300): gpu.launch("softmax", stream)
    threads = [threading.Thread(target=other) for _ in range(3)]
    for each in threads: each.start()
    for number in range(40): gpu.launch("copy", grid=(number + 1, 1, 1))
    for each in threads: each.join()
    gpu.synchronize()
    """
    run = counted(body, counters_exact_launches=1)
    count = values(run.main, "exact_count")["copy"]
    assert run.exit_code == 0
    assert count > 0
    assert values(run.main, "dram_read_bytes") == {"copy": count * 20_000_000}
    assert kernels(run.main) == {"copy": 40, "softmax": 900}


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"counters_exact": "("}, "is not a regular expression"),
        ({"counters_exact": r"\d"}, "POSIX extended"),
        ({"counters_exact_launches": 0}, "1 to 1,000,000 launches"),
        ({"counters": "dram"}, "need the same hardware"),
        ({"sample": "windows"}, "need the same hardware"),
    ],
)
def test_what_cannot_be_asked_for_is_refused(counted: Record, options: dict[str, object], words: str) -> None:
    run = counted("", **options)
    assert run.exit_code == 2
    assert words in run.talk


def test_counting_ends_with_the_session_that_wants_it(record: Record) -> None:
    """The next one chooses its own kernels, and what runs between them is as fast as ever."""
    body = """
    for pattern in ("copy", "matmul"):
        options = dict(backend="cuda", context="shadow", exact_kernels=pattern, exact_launches=1)
        with bragg.profile(f"counted_{pattern}", **options), bragg.scope(pattern): work(3, "copy", "matmul")
        with bragg.scope("between"):
            gpu.launch("copy", grid=(7, 1, 1))
            gpu.synchronize()
    """
    run = record(body, start=START + WORK)
    assert values(run.main, "exact_count") == {"copy/copy": 1, "matmul/matmul": 1}
