# ruff: noqa: N803 - constants of a kernel are capitals, as in Triton's own code
"""Fixes of accesses outside of a tensor: steps are blamed before masks, axes and extents have names."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import bragg.debug

pytest.importorskip("triton")

import triton
import triton.language as tl


@triton.jit
def adds_up(b, out, N, K, stride, step, B: tl.constexpr, W: tl.constexpr):
    rows, columns = tl.arange(0, B), tl.arange(0, W)
    b_ptrs = b + (rows[:, None] + tl.program_id(1) * B) * stride + columns[None, :]
    total = tl.zeros((B, W), tl.float32)
    for _k in range(tl.cdiv(K, B * tl.num_programs(1))):
        total += tl.load(b_ptrs, mask=columns[None, :] < N, other=0.0)
        b_ptrs += step * stride
    tl.atomic_add(out + columns, tl.sum(total, 0), mask=columns < N)


@triton.jit
def sums_flat(x, out, turns, B: tl.constexpr):
    pointers = x + tl.arange(0, B)
    total = tl.zeros((B,), tl.float32)
    for _k in range(turns):
        total += tl.load(pointers)
        pointers = pointers + B
    tl.store(out + tl.arange(0, B), total)


@triton.jit
def row_sums(x, out, step, n, B: tl.constexpr):
    columns = tl.arange(0, B)
    total = tl.load(x + tl.program_id(0) * step + columns, mask=columns < n, other=0.0)
    tl.store(out + tl.program_id(0), tl.sum(total, 0))


@triton.jit
def copies_flat(x, out, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(out + i, tl.load(x + i, mask=i <= n, other=0.0), mask=i < n)


@triton.jit
def stores_every_second(x, out, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(out + 2 * i, tl.load(x + i, mask=i < n, other=0.0), mask=i < n)


@triton.jit
def shifts(x, out, distance, n, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(out + i, tl.load(x + i + distance, mask=i < n, other=0.0), mask=i < n)


@triton.jit
def copies_a_block(x, out, M, N, rows, B: tl.constexpr):
    place = tl.make_block_ptr(x, (rows, N), (N, 1), (0, 0), (B, B), (1, 0))
    value = tl.load(place, boundary_check=(1,), padding_option="zero")
    tl.store(tl.make_block_ptr(out, (M, N), (N, 1), (0, 0), (B, B), (1, 0)), value, boundary_check=(0, 1))


@triton.jit
def scales_groups(scales, out, G: tl.constexpr, stride, n, B: tl.constexpr, W: tl.constexpr):
    rows, k = tl.program_id(0) * B + tl.arange(0, B), tl.arange(0, W)
    values = tl.load(scales + (k[None, :] // G) * stride + rows[:, None])
    tl.store(out + rows[:, None] * W + k[None, :], values, mask=rows[:, None] < n)


@triton.jit
def copies_unmasked_columns(x, out, M, N, B: tl.constexpr):
    rows, columns = tl.program_id(0) * B + tl.arange(0, B), tl.arange(0, B)
    values = tl.load(x + rows[:, None] * N + columns[None, :], mask=rows[:, None] <= M, other=0.0)
    tl.store(out + rows[:, None] * B + columns[None, :], values)


def finding_of(kernel: Any, grid: Any, *arguments: Any, **constants: Any) -> Any:
    """The first finding of an access outside of a tensor, or beyond the end of a row."""
    with bragg.debug.check() as report:
        kernel[grid](*arguments, **constants)
    return next(one for one in report if one.rule == "out-of-bounds")


def matrix(rows: int, columns: int) -> Any:
    return np.ones((rows, columns), "f4")


def line_of(kernel: Any, distance: int) -> int:
    return int(kernel.fn.__code__.co_firstlineno) + distance


def test_a_step_that_jumps_over_rows_is_blamed() -> None:
    found = finding_of(adds_up, (1,), matrix(16, 8), np.zeros(8, "f4"), 8, 16, 8, 16, B=4, W=8)
    assert found.hint == (
        f"Each turn b_ptrs += step * stride (line {line_of(adds_up, 7)}) moves the pointer by 16 along axis 0 of b, and"
        " the block covers 4: correct the step; a mask would hide the error"
    )
    assert found.address == (
        "b + (rows[:, None] + tl.program_id(1) * B) * stride + columns[None, :] + _k * (step * stride)"
    )
    assert found.witness.turn == "_k = 1"
    assert "index [16, 0], _k = 1" in "\n".join(found.lines())


def test_a_mask_of_another_axis_is_told_with_axis_and_extent() -> None:
    found = finding_of(adds_up, (1,), matrix(18, 8), np.zeros(8, "f4"), 8, 18, 8, 4, B=4, W=8)
    assert found.witness.turn == "_k = 4"
    assert found.hint == (
        "The mask columns[None, :] < N does not look at axis 0: compare the index of axis 0 of b with its extent, 18"
    )


def test_a_step_over_the_rows_of_other_programs_is_right() -> None:
    found = finding_of(adds_up, (1, 3), matrix(22, 8), np.zeros(8, "f4"), 8, 22, 8, 12, B=4, W=8)
    assert found.hint.startswith("The mask columns[None, :] < N does not look at axis 0")


def test_a_loop_that_turns_too_often_is_not_a_matter_of_the_mask() -> None:
    found = finding_of(sums_flat, (1,), np.ones(32, "f4"), np.zeros(16, "f4"), 3, B=16)
    assert found.hint == (
        f"Each turn pointers = pointers + B (line {line_of(sums_flat, 6)}) moves the pointer by 16 elements, and all"
        " lanes of this turn are outside: correct the step, or the end of the loop"
    )
    assert found.address == "x + tl.arange(0, B) + _k * B"


def test_a_rest_of_a_loop_needs_a_mask() -> None:
    found = finding_of(sums_flat, (1,), np.ones(40, "f4"), np.zeros(16, "f4"), 3, B=16)
    assert found.hint == "Give the access a mask that compares the index with 40, the elements of x"


def test_rows_of_a_view_that_are_counted_without_its_stride() -> None:
    view = matrix(6, 24)[:, :20]
    found = finding_of(row_sums, (6,), view, np.zeros(6, "f4"), 20, 20, B=32)
    assert "between the rows of x" in found.message
    assert found.hint == (
        "The address moves by 20 elements from one program to the next: the rows of x are 24 apart, so multiply the row"
        " by that stride"
    )


@triton.jit
def adds_rows(x, y, out, rows, x_stride, R: tl.constexpr, C: tl.constexpr):
    r, c = tl.arange(0, R)[:, None], tl.arange(0, C)[None, :]
    place, mask = r * x_stride + c, r < rows
    total = tl.load(x + place, mask=mask, other=0.0) + tl.load(y + place, mask=mask, other=0.0)
    tl.store(out + r * C + c, total, mask=mask)


def test_rows_that_are_counted_by_the_stride_of_another_tensor() -> None:
    y = matrix(10, 8)
    found = finding_of(adds_rows, (1,), matrix(10, 16)[:, :8], y, matrix(10, 8), 10, 16, R=16, C=8)
    assert found.tensor.name == "y"
    assert found.hint == (
        "The address counts 16 elements from one row to the next, and y has the strides [8, 1]: 16 is a stride of x"
    )


def test_flat_memory_of_a_view() -> None:
    found = finding_of(copies_flat, (15,), matrix(6, 24)[:, :20], np.zeros(120, "f4"), 119, B=8)
    assert found.hint == (
        "The address takes x as contiguous: the rows of x are 24 apart, so multiply the row by that stride"
    )


def test_columns_of_a_view_beyond_its_extent() -> None:
    found = finding_of(row_sums, (6,), matrix(6, 24)[:, :20], np.zeros(6, "f4"), 24, 21, B=32)
    assert found.hint == (
        "The mask columns < n lets these lanes through: compare the index of axis 1 of x with its extent, 20"
    )


def test_columns_beyond_a_row_that_is_followed_by_another() -> None:
    found = finding_of(row_sums, (6,), matrix(6, 20), np.zeros(6, "f4"), 20, 21, B=32)
    assert found.hint.endswith("compare the index of axis 1 of x with its extent, 20")


@pytest.mark.parametrize("shape", [(40,), (5, 8)])
def test_the_end_of_flat_memory_is_the_number_of_elements(shape: tuple[int, ...]) -> None:
    found = finding_of(copies_flat, (3,), np.ones(shape, "f4"), np.zeros(40, "f4"), 40, B=16)
    assert found.hint == "The mask i <= n lets these lanes through: compare the index with 40, the elements of x"


def test_lanes_further_apart_than_elements() -> None:
    found = finding_of(stores_every_second, (4,), np.ones(50, "f4"), np.zeros(50, "f4"), 50, B=16)
    assert found.hint == (
        "Neighbouring lanes are 2 elements apart, and those of out 1: a pointer of Triton counts elements, not bytes"
    )


@pytest.mark.parametrize("n", [51, 52])
def test_a_mask_that_lets_few_lanes_of_every_second_element_too_many_through(n: int) -> None:
    found = finding_of(stores_every_second, (4,), np.ones(52, "f4"), np.zeros(100, "f4"), n, B=16)
    assert found.hint.startswith("The mask i < n lets these lanes through")


def test_before_the_first_element_the_mask_lacks_0() -> None:
    found = finding_of(shifts, (1,), np.ones(16, "f4"), np.zeros(16, "f4"), -2, 16, B=16)
    assert found.hint == "The mask i < n lets these lanes through: compare the index with 0, too"


def test_an_address_without_a_lane_inside_is_wrong_itself() -> None:
    found = finding_of(shifts, (1,), np.ones(16, "f4"), np.zeros(16, "f4"), 16, 16, B=16)
    assert found.hint == "All lanes are outside: look at the address x + i + distance before the mask"


def test_an_axis_that_boundary_check_leaves_out() -> None:
    found = finding_of(copies_a_block, (1,), matrix(10, 12), matrix(10, 12), 10, 12, 10, B=16)
    assert found.hint == (
        "The mask boundary_check=(1,) does not look at axis 0: compare the index of axis 0 of x with its extent, 10"
    )


@triton.jit
def adds_rows_of_a_head(x, out, heads, groups, n, token, head, B: tl.constexpr, D: tl.constexpr):
    h = tl.program_id(1) // groups
    tokens, d = tl.arange(0, B), tl.arange(0, D)
    place = x + h * head + tokens[:, None] * token + d[None, :]
    total = tl.zeros((B, D), tl.float32)
    for start in range(0, tl.minimum(tl.program_id(0) * 16 + 8, n), B):
        total += tl.load(place, mask=(start + tokens)[:, None] < n, other=0.0)
        place += B * token
    tl.store(out + (tl.program_id(1) * 2 + tl.program_id(0)) * D + d, tl.sum(total, 0))


def test_the_index_of_the_axis_that_is_beyond_its_extent_is_named() -> None:
    x = np.ones((20, 2, 16), "f4")
    found = finding_of(adds_rows_of_a_head, (2, 6), x, np.zeros((12, 16), "f4"), 2, 2, 20, 32, 16, B=8, D=16)
    assert found.witness.index == (20, 0, 0)
    assert found.hint == "h, the index of axis 1 of x, is 2, and the extent of that axis 2: correct it"


def test_both_axes_that_an_access_leaves_are_named() -> None:
    found = finding_of(scales_groups, (2,), matrix(3, 12), np.zeros((16, 16), "f4"), 4, 12, 16, B=8, W=16)
    assert found.hint == (
        "Give the access a mask that compares the index of axis 0 of scales with its extent, 3, and that of axis 1 with"
        " its extent, 12 (32 more lanes are beyond the end of a row, inside of the tensor)"
    )


def test_an_axis_that_no_lane_leaves_is_not_named() -> None:
    found = finding_of(scales_groups, (2,), matrix(3, 16), np.zeros((16, 16), "f4"), 4, 16, 16, B=8, W=16)
    assert found.hint == "Give the access a mask that compares the index of axis 0 of scales with its extent, 3"


def test_a_mask_that_looks_at_one_of_two_axes_lets_lanes_through() -> None:
    found = finding_of(copies_unmasked_columns, (2,), matrix(10, 6), np.zeros((16, 8), "f4"), 10, 6, B=8)
    assert found.hint == (
        "The mask rows[:, None] <= M lets these lanes through: compare the index of axis 0 of x with its extent, 10,"
        " and that of axis 1 with its extent, 6"
    )


@triton.jit
def scales_by_the_next_group(scales, out, n, K, G: tl.constexpr, B: tl.constexpr, W: tl.constexpr):
    rows, k = tl.program_id(0) * B + tl.arange(0, B), tl.arange(0, W)
    group = k // G + 1
    values = tl.load(scales + rows[:, None] * (K // G) + group[None, :], mask=rows[:, None] < n, other=0.0)
    tl.store(out + rows[:, None] * W + k[None, :], values, mask=rows[:, None] < n)


def test_the_axis_whose_index_is_too_large_is_named_though_the_next_one_looks_so() -> None:
    found = finding_of(scales_by_the_next_group, (3,), matrix(10, 4), np.zeros((10, 16), "f4"), 10, 16, G=4, B=4, W=16)
    assert found.witness.index == (10, 0)
    assert found.hint == (
        "The mask rows[:, None] < n does not look at axis 1: compare the index of axis 1 of scales with its extent, 4"
        " (36 more lanes are beyond the end of a row, inside of the tensor)"
    )


@triton.jit
def sums_columns_by_turns(a, out, M, stride, K, B: tl.constexpr):
    rows, k = tl.program_id(0) * B + tl.arange(0, B), tl.arange(0, B)
    places = a + (rows[:, None] % M) * stride + k[None, :]
    total = tl.zeros((B, B), tl.float32)
    for _ in range(tl.cdiv(K, B)):
        total += tl.load(places)
        places += B
    tl.store(out + rows, tl.sum(total, 1), mask=rows < M)


def test_an_axis_whose_index_is_a_remainder_is_not_named() -> None:
    found = finding_of(sums_columns_by_turns, (2,), matrix(6, 20), np.zeros(6, "f4"), 6, 20, 20, B=8)
    assert "axis 0" not in found.hint
    assert found.hint.startswith("Give the access a mask that compares the index of axis 1 of a with its extent, 20")


@triton.jit
def writes_whole_rows(out, stride, B: tl.constexpr):
    tl.store(out + tl.program_id(0) * stride + tl.arange(0, B), 1.0)


@pytest.mark.parametrize("rows", [2, 5, 13, 64])
@pytest.mark.parametrize("columns", [96, 100, 200])
def test_the_fix_of_a_row_kernel_does_not_depend_on_the_number_of_rows(rows: int, columns: int) -> None:
    block = triton.next_power_of_2(columns)
    found = finding_of(writes_whole_rows, (rows,), np.zeros((rows, columns), "f4"), columns, B=block)
    assert found.hint == (f"Give the access a mask that compares the index of axis 1 of out with its extent, {columns}")


@triton.jit
def transposes(x, out, M, N, B: tl.constexpr):
    rows, columns = tl.program_id(0) * B + tl.arange(0, B), tl.program_id(1) * B + tl.arange(0, B)
    inside = (rows[:, None] < M) & (columns[None, :] < N)
    values = tl.load(x + rows[:, None] * N + columns[None, :], mask=inside, other=0.0)
    tl.store(
        out + columns[:, None] * M + rows[None, :], tl.trans(values), mask=(columns[:, None] < M) & (rows[None, :] < N)
    )


def test_a_mask_with_its_extents_swapped_is_told_before_the_race_that_it_makes() -> None:
    x = np.arange(50 * 70, dtype="f4").reshape(50, 70)
    with bragg.debug.check() as report:
        transposes[(2, 3)](x, np.zeros((70, 50), "f4"), 50, 70, B=32)
    assert [one.rule for one in report] == ["out-of-bounds", "data-race"]
    spill, race = report
    assert spill.hint.endswith("lets these lanes through: compare the index of axis 1 of out with its extent, 50")
    assert race.hint == f"First mend the access past the end of a row in line {spill.line}: this race follows from it"


@triton.jit
def takes_a_name_again(out, stride, B: tl.constexpr):
    places = tl.arange(0, B)
    row = out + tl.program_id(0) * stride + places
    places = places[:, None] + tl.arange(0, 2 * B)[None, :]
    tl.store(row, 1.0)
    tl.store(out + tl.program_id(0) * stride, tl.sum(tl.sum(places, 1), 0))


def test_a_name_with_another_value_since_does_not_tell_the_index() -> None:
    found = finding_of(takes_a_name_again, (4,), np.zeros((4, 40), "f4"), 40, B=64)
    assert found.hint == "Give the access a mask that compares the index of axis 1 of out with its extent, 40"
