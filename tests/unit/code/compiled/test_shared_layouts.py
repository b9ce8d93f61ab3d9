"""Lanes hold the elements that a layout says, and meet in a bank as often as the hardware makes them wait."""

from __future__ import annotations

import numpy as np
import pytest

from bragg.code.compiled.shared_accesses import SharedAccess, shared_accesses
from bragg.code.compiled.shared_layouts import conflict_ways, held, places
from bragg.code.mlir_text import places_of_mlir

PLAIN = "#ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>"
SWIZZLED = "#ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 32, order = [1, 0]}>"


def blocked(size: list[int], threads: list[int], order: list[int]) -> str:
    return (
        f"#ttg.blocked<{{sizePerThread = {size}, threadsPerWarp = {threads}, warpsPerCTA = [1, 1], order = {order}}}>"
    )


ROWS = blocked([1, 1], [1, 32], [1, 0])
COLUMNS = blocked([1, 1], [32, 1], [0, 1])


@pytest.mark.parametrize(
    ("registers", "memory", "ways"),
    [
        (ROWS, PLAIN, 1),
        (COLUMNS, PLAIN, 8),
        (COLUMNS, SWIZZLED, 1),
        (blocked([1, 1], [4, 8], [1, 0]), PLAIN, 4),
        (blocked([1, 4], [4, 8], [1, 0]), PLAIN, 1),
        (blocked([4, 1], [8, 4], [0, 1]), PLAIN, 8),
    ],
)
def test_lanes_that_meet_in_one_bank(registers: str, memory: str, ways: int) -> None:
    indices = held(registers, (32, 32))
    assert indices is not None
    addresses = places(memory, indices, (32, 32), 4)
    assert addresses is not None
    assert conflict_ways(addresses, 4) == ways


def test_every_element_is_held_once_and_has_its_own_place() -> None:
    indices = held(blocked([2, 2], [4, 8], [1, 0]), (32, 32))
    assert indices is not None
    assert len(np.unique(indices.reshape(-1, 2), axis=0)) == 1024
    memory = "#ttg.nvmma_shared<{swizzlingByteWidth = 64, transposed = false, elementBitWidth = 16}>"
    addresses = places(memory, indices, (32, 32), 2)
    assert addresses is not None
    assert sorted(addresses.ravel().tolist()) == list(range(0, 2048, 2))


def test_a_linear_layout_is_the_blocked_one_it_describes() -> None:
    linear = (
        "#ttg.linear<{register = [[0, 1]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [], block = []}>"
    )
    assert np.array_equal(held(linear, (8, 8)), held(blocked([1, 2], [8, 4], [1, 0]), (8, 8)))


def test_operands_hold_whole_rows_and_slices_lose_an_axis() -> None:
    parent = blocked([2, 2], [4, 8], [1, 0])
    left = held(f"#ttg.dot_op<{{opIdx = 0, parent = {parent}}}>", (8, 16))
    assert left is not None
    assert {tuple(index) for index in left[:, 0]} == {(row, k) for row in (0, 1) for k in range(16)}
    rest = held(f"#ttg.slice<{{dim = 1, parent = {parent}}}>", (8,))
    assert rest is not None
    assert rest[:, 8, 0].tolist() == [2, 2, 3, 3]
    assert held("#ttg.nvidia_mma<{versionMajor = 3}>", (8, 8)) is None


def test_accesses_are_read_from_the_dialect_with_their_lines() -> None:
    operand = "#ttg.dot_op<{opIdx = 0, parent = #blocked}>"
    text = f"""#blocked = {ROWS}
#shared = {PLAIN}
#loc1 = loc("kernel.py":7:20)
#loc2 = loc("acc"(#loc1))
    %1 = ttg.local_load %0 : !ttg.memdesc<32x32xf32, #shared, #smem> -> tensor<32x32xf32, {operand}> loc(#loc2)
    %2 = ttg.local_alloc %1 : (tensor<32x64xf8E5M2, #blocked>) -> !ttg.memdesc<32x64xf8E5M2, #shared, #smem> loc(#loc1)
    %3 = ttg.local_alloc : () -> !ttg.memdesc<2x32x32xf32, #shared, #smem, mutable> loc(#loc1)
"""
    found = list(shared_accesses(text))
    assert found == [
        SharedAccess("read", (32, 32), 32, f"#ttg.dot_op<{{opIdx = 0, parent = {ROWS}}}>", PLAIN, 4),
        SharedAccess("write", (32, 64), 8, ROWS, PLAIN, 5),
    ]
    assert [places_of_mlir(text)[access.row][0][:2] for access in found] == [("kernel.py", 7)] * 2
