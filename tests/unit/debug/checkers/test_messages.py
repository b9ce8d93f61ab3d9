# ruff: noqa: N803 - constants of a kernel are capitals, as in Triton's own code
"""What findings say: one race once, masks as conditions, strides where they are what is wrong."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import bragg.debug

pytest.importorskip("triton")

import triton
import triton.language as tl


@triton.jit
def copies_rows(x, out, M, N, stride, B: tl.constexpr):
    rows, columns = tl.arange(0, B), tl.arange(0, B)
    of_rows = rows < M
    mask = of_rows[:, None] & (columns < N)[None, :]
    value = tl.load(x + rows[:, None] * stride + columns[None, :], mask=mask, other=0.0)
    tl.store(out + rows[:, None] * N + columns[None, :], value, mask=mask)


@triton.jit
def stores_a_block(out, M, N, stride, B: tl.constexpr):
    place = tl.make_block_ptr(out, (M, N), (stride, 1), (0, 0), (B, B), (1, 0))
    tl.store(place, tl.full((B, B), 1.0, tl.float32), boundary_check=(0, 1))


@triton.jit
def adds_in_place(x, B: tl.constexpr):
    i = tl.arange(0, B)
    value = tl.load(x + i)
    tl.store(x + i, value + tl.program_id(0))


@triton.jit
def two_races(x, y):
    tl.store(x, tl.program_id(0))
    tl.store(y, tl.program_id(0))


@triton.jit
def scales_rows(x, out, n, stride, B: tl.constexpr):
    columns = tl.arange(0, B)
    mask = columns <= n
    value = tl.load(x + tl.program_id(0) * stride + columns, mask=mask)
    tl.store(out + tl.program_id(0) * stride + columns, tl.program_id(0) * value, mask=mask)


@triton.jit
def writes_first_row(out, n, B: tl.constexpr):
    columns = tl.arange(0, B)
    tl.store(out + tl.program_id(0) * n + columns, 1.0, mask=columns <= n)
    tl.store(out + columns, 2.0, mask=columns < n)


@triton.jit
def sums_tiles(x, out, K, stride, STEP: tl.constexpr, B: tl.constexpr):
    rows = tl.arange(0, B)
    places = x + rows[:, None] * stride + rows[None, :]
    total = tl.zeros((B, B), tl.float32)
    for _ in range(0, K, B):
        total += tl.load(places, mask=rows[None, :] < 12, other=0.0)
        places += STEP * stride
    tl.store(out + rows, tl.sum(total, 0), mask=rows < 12)


def findings_of(kernel: Any, grid: int, *arguments: Any, **constants: Any) -> list[Any]:
    with bragg.debug.check() as report:
        kernel[(grid,)](*arguments, **constants)
    return list(report)


def matrix(rows: int = 10, columns: int = 12) -> Any:
    return np.ones((rows, columns), "f4")


def test_more_accesses_than_lanes_are_counted_as_such() -> None:
    (found,) = findings_of(adds_in_place, 7, np.ones(16, "f4"), B=16)
    assert "lanes 0-15 (seen 288 times)" in "\n".join(found.lines())


def test_masks_are_told_as_the_conditions_that_they_stand_for() -> None:
    (finding,) = findings_of(copies_rows, 1, matrix(), matrix(), 11, 12, 12, B=16)[:1]
    assert finding.mask == "(rows < M)[:, None] & (columns < N)[None, :]"
    assert finding.hint.startswith("The mask (rows < M)[:, None] & (columns < N)[None, :] lets")


def test_a_stride_that_the_tensor_does_not_have_is_blamed() -> None:
    (finding,) = findings_of(copies_rows, 1, matrix(), matrix(), 10, 12, 16, B=16)
    assert finding.hint == "The address counts 16 elements from one row to the next, and x has the strides [12, 1]"
    (finding,) = findings_of(stores_a_block, 1, matrix(), 10, 12, 16, B=16)
    assert finding.hint == "The address counts 16 elements from one row to the next, and out has the strides [12, 1]"


def test_the_step_of_pointers_that_move_is_named_before_the_mask() -> None:
    (finding,) = findings_of(sums_tiles, 1, matrix(16), matrix(1), 16, 12, STEP=16, B=8)
    line = sums_tiles.fn.__code__.co_firstlineno + 7
    assert finding.hint == (
        f"Each turn places += STEP * stride (line {line}) moves the pointer by 16 along axis 0 of x, and the block"
        " covers 8: correct the step; a mask would hide the error"
    )


def test_the_axis_that_the_mask_forgets_is_named() -> None:
    (finding,) = findings_of(copies_rows, 1, matrix(), matrix(16, 16), 11, 12, 12, B=16)
    assert finding.hint == (
        "The mask (rows < M)[:, None] & (columns < N)[None, :] lets these lanes through: compare the index of axis 0 of"
        " x with its extent, 10"
    )


def test_programs_that_step_by_another_stride_are_blamed() -> None:
    found = findings_of(scales_rows, 10, matrix(10, 16)[:, :12], matrix(10, 16), 11, 12, B=16)
    assert found[0].hint == (
        "The address moves by 12 elements from one program to the next: the rows of x are 16 apart, so multiply the row"
        " by that stride"
    )


def test_every_second_row_is_no_wrong_stride() -> None:
    (finding,) = findings_of(copies_rows, 1, matrix(), matrix(), 10, 12, 24, B=16)
    assert "mask" in finding.hint


def test_a_race_comes_after_the_mask_that_makes_it() -> None:
    found = findings_of(scales_rows, 10, matrix(), matrix(), 12, 12, B=16)
    store = scales_rows.fn.__code__.co_firstlineno + 5
    assert [(one.rule, one.line - store) for one in found] == [
        ("out-of-bounds", -1),
        ("out-of-bounds", 0),
        ("out-of-bounds", 0),
        ("data-race", 0),
        ("out-of-bounds", -1),
    ]
    assert found[2].message.startswith("store past the end of a row of out into the next")
    assert found[3].hint == f"First mend the access past the end of a row in line {store}: this race follows from it"


def test_a_race_beside_a_wrong_mask_keeps_its_own_hint() -> None:
    found = findings_of(writes_first_row, 10, matrix(), 12, B=16)
    race = next(one for one in found if one.rule == "data-race" and one.mask == "columns < n")
    assert race.hint.startswith("Let each element belong to one program")


def test_one_race_is_told_once() -> None:
    (finding,) = findings_of(adds_in_place, 4, np.ones(16, "f4"), B=16)
    assert finding.programs == {0, 1, 2, 3}
    assert finding.line == adds_in_place.fn.__code__.co_firstlineno + 4


@triton.jit
def adds_to_groups(x, n, groups, B: tl.constexpr):
    columns = tl.arange(0, B)
    part = x + (tl.program_id(0) % groups) * n + columns
    value = tl.load(part, mask=columns < n, other=0.0)
    tl.store(part, value + tl.program_id(0), mask=columns < n)


def test_a_lost_update_over_several_batches_is_one_race_with_two_places() -> None:
    (finding,) = findings_of(adds_to_groups, 16, matrix(4, 12), 12, 4, B=16)
    line = adds_to_groups.fn.__code__.co_firstlineno + 4
    assert (finding.rule, finding.line, finding.other["line"]) == ("data-race", line, line + 1)
    assert finding.programs == set(range(16))


def test_races_at_two_lines_are_two() -> None:
    found = findings_of(two_races, 4, np.ones(1, "i4"), np.ones(1, "i4"))
    assert [finding.tensor.name for finding in found] == ["x", "y"]


@triton.jit
def releases_without_barrier(total, lock, x, B: tl.constexpr):
    i = tl.arange(0, B)
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    tl.store(total + i, tl.load(total + i) + tl.load(x + i))
    tl.atomic_xchg(lock, 0)


def test_what_is_missing_for_an_order_stands_in_a_line_and_is_the_fix() -> None:
    total, lock, x = np.zeros(16, "f4"), np.zeros(1, "i4"), np.ones(16, "f4")
    finding = findings_of(releases_without_barrier, 4, total, lock, x, B=16)[0]
    lines = finding.lines()
    (side,) = (number for number, line in enumerate(lines) if line.startswith("  other side: program (0, 0, 0) at "))
    assert lines[side + 1 :] == [
        "  not ordered: the other program's threads do not wait for each other before it releases",
        "  fix: Put tl.debug_barrier() between the access of the other side and the atomic that releases it",
    ]
