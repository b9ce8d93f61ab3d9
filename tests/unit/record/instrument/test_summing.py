"""Where the blocks of a launch ran, from the headers of their warps."""

from __future__ import annotations

import numpy as np
import pytest

from bragg.code.instrument.rewriting import HEADER_BYTES, MAGIC, Instrumented
from bragg.model.inside_kernels import InsideKernel, inside_kernels
from bragg.record.instrument.buffers import Plan
from bragg.record.instrument.summing import summed

GHZ = 2


def header(block: int, multiprocessor: int, start_ns: int, end_ns: int) -> bytes:
    words = np.zeros(HEADER_BYTES // 4, np.uint32)
    words[:8] = np.array([start_ns, start_ns * GHZ, end_ns, end_ns * GHZ], np.uint64).view("<u4")
    words[8:12] = MAGIC, multiprocessor, block, 0
    return words.tobytes()


def placed(blocks: list[tuple[int, int, int]], shift: int = 0) -> InsideKernel:
    """Blocks of two warps, each with its multiprocessor, start and end."""
    images = [header(number, *block) for number, block in enumerate(blocks) for _ in range(2)]
    plan = Plan(len(blocks) << shift, 2, shift, shift)
    row = {"kernel": "k", "level": "blocks", **summed(b"".join(images), b"", Instrumented("", ()), plan)}
    (kernel,) = inside_kernels([row])
    return kernel


def test_blocks_that_follow_each_other_at_once_are_one_at_a_time() -> None:
    kernel = placed([(0, 100, 200), (1, 100, 200), (0, 200, 300), (1, 200, 300)])
    assert (kernel.placement.resident, kernel.waves, kernel.placement.tail_share) == (1, 2.0, 0.0)
    assert kernel.placement.busy_ns == (200, 200)
    assert kernel.placement.imbalance == 0


def test_blocks_that_overlap_share_a_multiprocessor() -> None:
    kernel = placed([(0, 100, 200), (0, 110, 210), (1, 100, 190), (1, 105, 205), (0, 200, 300)])
    assert (kernel.placement.resident, kernel.waves) == (2, 1.25)
    # From 200 to 300, of 4 places: one is used whole, two for 10 and 5 ns.
    assert kernel.placement.tail_share == pytest.approx((400 - 100 - 10 - 5) / (4 * 200))
    assert kernel.placement.imbalance == pytest.approx(300 / 245 - 1)


def test_where_only_some_blocks_told_nothing_is_said_of_waves() -> None:
    kernel = placed([(0, 100, 200), (1, 100, 200)], shift=1)
    assert (kernel.blocks, kernel.waves, kernel.placement.multiprocessors) == (4, None, 2)
