"""A launch with probes, on a driver that keeps what it is told."""

from __future__ import annotations

import os
import struct
from typing import Any

import numpy as np
import pytest

from bragg.code.instrument.assembling import find_ptxas
from bragg.code.instrument.blocks import read_kernel
from bragg.code.instrument.probes import COUNTERS, Probe
from bragg.code.instrument.stored_types import stored_types
from bragg.model.kernels.inside_rows import inside_kernels
from bragg.record.instrument.probed_launch import ProbedLaunch
from bragg.views.text.probe_facts import probe_lines

triton = pytest.importorskip("triton")

from tests.support.timed_kernels import compiled, line_of  # noqa: E402

PTXAS = find_ptxas(triton, "sm_90a", os.environ)
READY, DONE = 1, 2


class Driver:
    """Events are done when the test says so; memory holds what it sets."""

    def __init__(self) -> None:
        self.done: set[int] = set()
        self.control = b""
        self.image = b""

    def zeros(self, size_bytes: int) -> int:
        self.image = bytes(size_bytes)
        return 4096

    def symbol(self, module: int, name: str) -> int:
        return module

    def write(self, address: int, content: bytes) -> int:
        self.control = content
        return READY

    def event(self) -> int:
        return DONE

    def record(self, event: int, stream: int) -> None:
        pass

    def is_done(self, event: int) -> bool:
        return event in self.done

    def read(self, address: int, size_bytes: int) -> bytes:
        assert address == 4096
        return self.image


def softmax(driver: Any, *wanted: Probe) -> ProbedLaunch:
    kernel = compiled("softmax")
    types = stored_types(kernel.asm["ttgir"])
    return ProbedLaunch(driver, read_kernel(kernel.asm["ptx"]), wanted, types, PTXAS, [], lambda _: (5, 6))


def test_it_waits_for_its_memory_and_counts_in_some_blocks() -> None:
    driver = Driver()
    launch = softmax(driver, Probe.BRANCHES)
    assert not launch.begin(4096, False)
    assert struct.unpack("<QQIIII", driver.control) == (4096, 0, 0, 0, 7, 0)
    driver.done = {READY}
    assert launch.begin(4096, False)
    assert launch.is_launched
    assert not launch.is_done
    launch.end(0)
    assert not launch.is_done
    driver.done = {READY, DONE}
    assert launch.is_done
    assert launch.results() == {"probed_blocks": 512, "probes": []}


@pytest.mark.parametrize(("blocks", "has_clusters", "mask"), [(512, False, 0), (513, False, 1), (4096, True, 0)])
def test_small_grids_and_clusters_count_in_all_blocks(blocks: int, has_clusters: bool, mask: int) -> None:
    driver = Driver()
    softmax(driver, Probe.BRANCHES).begin(blocks, has_clusters)
    assert struct.unpack("<QQIIII", driver.control)[4] == mask


def test_counts_are_told_by_line() -> None:
    driver = Driver()
    driver.done = {READY, DONE}
    launch = softmax(driver, *Probe)
    launch.begin(64, False)
    launch.end(0)
    counters = np.zeros((len(launch._sites), COUNTERS), np.uint64)
    for number, site in enumerate(launch._sites):
        if site.probe is Probe.ACCESSES:
            counters[number] = 100, 3200, 1600, 0
        elif site.probe is Probe.VALUES:  # 65504, and infinity in block 17
            counters[number] = 100, 0x7C00, 1 << 63 | 17 << 32 | 2 << 24 | 4, 0
        elif site.is_back:
            counters[number] = 800, 700 * 32, 0, 0
    driver.image = counters.tobytes()
    (kernel,) = inside_kernels([{"kernel": "softmax", **launch.results()}])
    line = line_of("softmax", "tl.store")
    told = {(each.does, each.lines[-1].line): each for each in kernel.counts if each.probe != "values"}
    assert (told["stores", line].sectors, told["stores", line].lanes) == (1600, 3200)
    turns = told["another turn of the loop", line_of("softmax", "for start")]
    assert turns.turns == 8.0
    (values,) = (each for each in kernel.counts if each.probe == "values")
    assert (values.greatest, values.first_bad) == (float("inf"), (17, 2, 4))
    lines = list(probe_lines(kernel))
    stores = f"  stores (timed_kernels.py:{line})"
    loop = f"  another turn of the loop (timed_kernels.py:{line_of('softmax', 'for start')})"
    assert lines[:2] == [
        "one launch with probes, 64 blocks:",
        f"{stores}: greatest magnitude inf; the first NaN or Inf in block 17, warp 2, at its passage 5",
    ]
    assert f"{stores}: 16.0 sectors a request, 16.0 if they were packed; 32.0 of 32 lanes" in lines
    assert f"{loop}: 8.0 turns on average" in lines
