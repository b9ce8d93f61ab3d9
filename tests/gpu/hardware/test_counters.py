"""Sampled counters on a real GPU: bytes of short kernels, and two sets by turns in one recording, each right."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bragg.model.kernels.counters import KernelCounter, kernel_counters
from tests.gpu.conftest import record

pytestmark = pytest.mark.cuda

_BYTES, _SIDE = 1 << 30, 8192


def of(rows: list[KernelCounter], kernel: str, counter: str) -> KernelCounter:
    """The row of the kernel that ran longest among those with a name."""
    found = [row for row in rows if kernel in row.kernel.lower() and row.counter.startswith(counter)]
    return max(found, key=lambda row: row.sampled_ns)


def test_sets_that_take_turns_are_each_right(tmp_path: Path) -> None:
    for seconds in ("10", "30"):  # beside other programs the first turn begins late
        (directory := tmp_path / seconds).mkdir()
        profile = record(directory, "copy_and_product.py", "--counters", "default,l2", arguments=[seconds]).profile
        device = profile.meta["counters"]["devices"]["0"]
        if device.get("turns", 0) >= 3:
            break
    rows = kernel_counters(profile)
    print(device)
    for row in rows:
        print(row)
    assert "reason" not in device
    assert len(device["sets"]) == 2
    assert device["turns"] >= 3
    assert all(each["sampled_ns"] > 0.3e9 for each in device["sets"])
    product = of(rows, "nvjet", "tensor pipe active")
    assert product.is_told
    assert 60 < product.rate <= 100.5
    assert 0 < of(rows, "nvjet", "L2 busy").rate < 90
    assert 5 < of(rows, "nvjet", "warps active").rate < 30
    copy = of(rows, "elementwise", "DRAM read")
    assert copy.is_told
    tree, time_ns = profile.tree, profile.own("gpu_time")
    nodes = [node for node in time_ns.nonzero()[0].tolist() if tree.frames.name[tree.frame[node]] == copy.kernel]
    each_ns = time_ns[nodes].sum() / profile.own("gpu_count")[nodes].sum()
    assert copy.rate * each_ns / 1e9 == pytest.approx(_BYTES, rel=0.03)
    assert 20 < of(rows, "elementwise", "L2 busy").rate < 95
    sectors = of(rows, "elementwise", "L2 sectors")
    # An H100 counts 1.54 times as many: some pass both halves of its L2.
    assert 0.85 * 2 * _BYTES < sectors.rate * each_ns / 1e9 * 32 < 2 * 2 * _BYTES


def test_bytes_of_kernels_of_10_us_are_those_known(tmp_path: Path) -> None:
    run = record(tmp_path, "short_kernels.py", "--counters", "dram")
    profile = run.profile
    tree, time_ns, launches = profile.tree, profile.inclusive("gpu_time"), profile.inclusive("gpu_count")
    for name, (read, written) in json.loads(run.stdout.splitlines()[-1]).items():
        (node,) = [node for node in range(len(tree)) if tree.label(node) == name]
        each = {
            metric: float(profile.inclusive(metric)[node] / launches[node])
            for metric in ("dram_read_bytes", "dram_write_bytes", "dram_bytes", "dram_bytes_error")
        }
        print(name, time_ns[node] / launches[node], "ns", each, "known", read, written)
        assert time_ns[node] / launches[node] < 20_000
        assert each["dram_bytes"] == pytest.approx(read + written, rel=0.1)
        assert each["dram_read_bytes"] == pytest.approx(read, rel=0.1, abs=0.1 * written)
