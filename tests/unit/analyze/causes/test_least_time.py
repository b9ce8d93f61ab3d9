"""How long launches take that only their bytes or their products bound."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bragg.analyze.causes.hot_kernels import HotKernel
from bragg.analyze.causes.least_time import moving_ns, multiplying_ns
from bragg.analyze.kernel_facts import Configuration
from bragg.model import Place
from bragg.model.kernels.compiled import Access, CompiledKernel, Dot, Loop
from tests.support.profiles import profile_from_text

H200 = {"name": "NVIDIA H200", "arch": "90", "num_sms": 132, "clock_khz": 1_980_000}
MEMORY = {"memory_clock_khz": 3_000_000, "bus_width_bits": 6400}  # 4.8 TB/s
LINE = Place("a.py", 1)
LOAD = Access(LINE, False, "x", False, "f32", 4, 1024, 1024, ("1",))
STORE = replace(LOAD, is_store=True, tensor="out")


def launched(*grids: tuple[int, int, int], mean_ns: float = 1e6) -> HotKernel:
    launches = tuple(Configuration(1, grid, (128, 1, 1), None, 32, 0, 0) for grid in grids)
    profile = profile_from_text("root\n  k 1ms")
    return HotKernel(profile, "k", np.ones(1, np.bool_), 1.0, mean_ns, None, None, launches, H200 | MEMORY)


def test_tiles_move_once_at_the_bandwidth_that_kernels_reach() -> None:
    compiled = CompiledKernel("k/1", accesses=(LOAD, replace(LOAD, place=Place("a.py", 2)), STORE))
    blocks, of_block = 100_000, 2 * 4096  # neighbours of what one tensor has come from caches
    assert moving_ns(launched((blocks, 1, 1)), compiled) == pytest.approx(blocks * of_block / (0.8 * 4.8e12) * 1e9)


def test_lanes_that_a_mask_drops_move_nothing() -> None:
    short = CompiledKernel("k/1", accesses=(replace(LOAD, needed=32),))
    assert moving_ns(launched((100_000, 1, 1)), short) == pytest.approx(100_000 * 128 / (0.8 * 4.8e12) * 1e9)


def test_bytes_that_no_memory_moves_in_the_time_of_a_launch_are_not_known() -> None:
    compiled = CompiledKernel("k/1", accesses=(LOAD,))
    assert moving_ns(launched((100_000, 1, 1), mean_ns=80e3), compiled) is None  # 85 us at the peak
    assert moving_ns(launched((100_000, 1, 1), mean_ns=90e3), compiled) == pytest.approx(106.7e3, rel=1e-3)


@pytest.mark.parametrize(
    ("times", "grids", "is_known"),
    [
        (8, [(64, 1, 1)], True),
        (8, [(64, 1, 1), (128, 1, 1)], False),  # turns are those of the first launch
        (1, [(64, 1, 1), (128, 1, 1)], True),
        (None, [(64, 1, 1)], False),
    ],
)
def test_turns_of_the_first_launch_are_those_of_one_grid(
    times: int | None, grids: list[tuple[int, int, int]], is_known: bool
) -> None:
    compiled = CompiledKernel("k/1", accesses=(replace(LOAD, times=times),))
    assert (moving_ns(launched(*grids), compiled) is not None) == is_known


def test_products_take_what_tensor_cores_reach() -> None:
    dot, loop = Dot(LINE, True, 32, 32, 32, "bf16", "ieee"), Loop(LINE, 2, 1, turns=64)
    compiled = CompiledKernel("k/1", dots=(dot,), loops=(loop,))
    found = multiplying_ns(launched((65_536, 1, 1)), compiled)
    assert found == pytest.approx(65_536 * 64 * 2 * 32**3 / (0.45 * 989.4e12) * 1e9, rel=0.02)
    assert multiplying_ns(launched((65_536, 1, 1)), replace(compiled, loops=(replace(loop, turns=None),))) is None
