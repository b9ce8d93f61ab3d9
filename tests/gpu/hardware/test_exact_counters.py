"""Launches that are counted exactly, on a real GPU: bytes of a known copy, and nothing of the program changed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from bragg.analyze.roofline import roofline
from bragg.model import Profile
from bragg.model.table import FloatArray
from tests.gpu.conftest import record

pytestmark = pytest.mark.cuda

_BYTES = 1 << 30


def launches_of(profile: Profile, counter: str) -> FloatArray:
    """The launches behind a counter of each node."""
    name = f"{counter}_counted_launches"
    return profile.own(name if name in profile.metrics else "exact_count")


def test_counters_of_several_passes_take_turns_and_are_those_known(tmp_path: Path) -> None:
    names = "sm__inst_executed_pipe_tensor.sum,l1tex__t_sectors.sum,lts__t_sectors.sum,smsp__inst_executed.sum"
    wanted = f"elementwise,default,{names}"
    run = record(tmp_path, "exact_counters.py", "--counters-exact", wanted, "--counters-exact-launches", "1")
    profile, told = run.profile, run.profile.meta["exact_counters"]
    print(told)
    assert "reason" not in told["devices"]["0"]
    sets = told["devices"]["0"]["sets"]
    print(len(sets), "sets", sets, "left out", told["devices"]["0"]["left_out"])
    dram = profile.own("dram_read_bytes")
    launches = launches_of(profile, "dram")
    print("bytes of a launch", (dram[dram > 0] / launches[dram > 0]).tolist())
    assert (dram[dram > 0] / launches[dram > 0]).max() == pytest.approx(_BYTES, rel=0.03)
    assert profile.total("gpu_count") == pytest.approx(profile.meta["statistics"]["launches"], abs=30)


def test_metrics_of_several_passes_are_counted_over_launches(tmp_path: Path) -> None:
    throughput = "sm__throughput.avg.pct_of_peak_sustained_elapsed"
    tensor, instructions = "sm__inst_executed_pipe_tensor.sum", "sm__inst_executed.sum"
    wanted = f"gemm|nvjet|cutlass,{instructions},{tensor},{throughput}"
    options = ["--counters-exact", wanted, "--counters-exact-launches", "1"]
    run = record(tmp_path, "exact_counters.py", *options, arguments=["40"])
    profile, told = run.profile, run.profile.meta["exact_counters"]
    print(told)
    device = told["devices"]["0"]
    assert "reason" not in device
    assert device["left_out"] == []
    assert max(device["passes"]) > 2
    of_launch = {}
    for metric in (instructions, tensor):
        own, launches = profile.own(metric), launches_of(profile, metric)
        of_launch[metric] = float((own[launches > 0] / launches[launches > 0]).max())
    share = float(np.nanmax(profile.own(throughput)))
    print(of_launch, throughput, share)
    assert 0 < of_launch[tensor] < of_launch[instructions]
    assert 50 < share <= 100
    assert "sum 40.0 40.0 1.0" in run.stdout
    assert profile.total("gpu_count") == pytest.approx(profile.meta["statistics"]["launches"], abs=30)


def test_bytes_and_tensor_time_of_counted_launches_are_those_known(tmp_path: Path) -> None:
    run = record(tmp_path, "exact_counters.py", "--counters-exact", "elementwise|gemm|nvjet|cutlass")
    profile, told = run.profile, run.profile.meta["exact_counters"]
    print(told)
    assert "sum 5.0 5.0 1.0" in run.stdout
    assert told["counted_launches"] > 0
    assert "reason" not in told["devices"]["0"]
    tree, count = profile.tree, profile.own("exact_count")
    found = {}
    for node in np.flatnonzero(count).tolist():
        path = [tree.frames.name[tree.frame[step]] for step in tree.path(node)[1:]]
        of_launch = {
            metric: profile.own(metric)[node] / launches_of(profile, counter)[node]
            for metric, counter in (
                ("dram_read_bytes", "dram"),
                ("dram_write_bytes", "dram"),
                ("dram_counted_time", "dram"),
                ("tensor_active_time", "tensor_active"),
            )
        }
        of_launch["record_ns"] = profile.own("gpu_time")[node] / profile.own("gpu_count")[node]
        print(path[-1][:60], int(profile.own("gpu_count")[node]), int(count[node]), of_launch)
        found |= {scope: of_launch for scope in ("add", "matmul") if scope in path}
    add, matmul = found["add"], found["matmul"]
    assert add["dram_read_bytes"] == pytest.approx(_BYTES, rel=0.03)
    assert add["dram_write_bytes"] == pytest.approx(_BYTES, rel=0.03)
    assert add["record_ns"] == pytest.approx(add["dram_counted_time"], rel=0.1)  # no second record counts
    assert matmul["tensor_active_time"] > 0.7 * matmul["dram_counted_time"]
    assert profile.total("gpu_count") == pytest.approx(profile.meta["statistics"]["launches"], abs=30)


def test_instructions_that_are_counted_one_by_one_are_those_that_the_hardware_counts(tmp_path: Path) -> None:
    by_instruction, by_hardware = "smsp__sass_inst_executed", "sm__inst_executed.sum"
    wanted = f"elementwise,dram_read,{by_hardware},{by_instruction}"
    run = record(tmp_path, "exact_counters.py", "--counters-exact", wanted)
    profile = run.profile
    told = profile.meta["exact_counters"]
    launches = profile.own("instruction_counted_launches")
    nodes = np.flatnonzero(launches)
    ours = profile.inclusive(by_instruction)[nodes] / launches[nodes]
    theirs = profile.own(by_hardware)[nodes] / profile.own(f"{by_hardware}_counted_launches")[nodes]
    is_first = np.array([name == "+0x0" for name in profile.tree.frames.name])[profile.tree.frame]
    warps = profile.own(by_instruction)[is_first].sum()
    more = ((theirs - ours) * launches[nodes]).sum() / warps
    print(told, ours, theirs, warps, more)
    assert told["devices"]["0"]["left_out"] == []
    assert len(nodes)
    assert 0 <= more < 10  # what CUPTI adds to a kernel in order to time it is 8 instructions a warp
    assert "had not come" not in run.stderr
    without_record = profile.total("instruction_counted_launches")
    assert profile.total("gpu_count") + without_record == pytest.approx(profile.meta["statistics"]["launches"], abs=30)


def test_flops_of_products_are_those_known(tmp_path: Path) -> None:
    run = record(
        tmp_path,
        "timed_kernel.py",
        "--counters-exact",
        "matmul,dram,flop",
        arguments=["matmul", "matmul_tma"],
    )
    assert run.stdout.count(": 60 of 60 results are equal") == 2
    profile = run.profile
    assert profile.meta["exact_counters"]["devices"]["0"]["left_out"] == []
    names = np.array([profile.tree.frames.name[frame] for frame in profile.tree.frame])
    points = [point for point in roofline(profile).points if point.name.startswith("matmul")]
    assert len(points) == 2
    for point in points:
        timed = profile.own("gpu_count")[names == point.name].sum()
        assert point.flops / timed == 2 * 8192**3
        # Each operand is read once at least, and the result written; an H100's roofs meet at 295, an H200's at 206.
        assert 50 < point.intensity <= 2 * 8192**3 / (3 * 8192**2 * 2)
