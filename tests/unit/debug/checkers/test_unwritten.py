# ruff: noqa: N803 - constants of a kernel are capitals, as in Triton's own code
"""Results of which a part is written by nobody, and tensors that are larger than what is written on purpose."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

pytest.importorskip("triton")

import triton
import triton.language as tl

import bragg.debug


@triton.jit
def doubled(x, out, n, B: tl.constexpr, STEP: tl.constexpr = 0):
    i = tl.program_id(0) * (STEP or B) + tl.arange(0, B)
    tl.store(out + i, tl.load(x + i, mask=i < n) * 2, mask=i < n)


@triton.jit
def copied(x, out, rows, columns, x_stride, out_stride, R: tl.constexpr, C: tl.constexpr):
    r = tl.program_id(0) * R + tl.arange(0, R)[:, None]
    c = tl.program_id(1) * C + tl.arange(0, C)[None, :]
    mask = (r < rows) & (c < columns)
    tl.store(out + r * out_stride + c, tl.load(x + r * x_stride + c, mask=mask), mask=mask)


@triton.jit
def copied_by_swapped_programs(x, out, rows, columns, R: tl.constexpr, C: tl.constexpr):
    r = tl.program_id(1) * R + tl.arange(0, R)[:, None]
    c = tl.program_id(0) * C + tl.arange(0, C)[None, :]
    mask = (r < rows) & (c < columns)
    tl.store(out + r * columns + c, tl.load(x + r * columns + c, mask=mask), mask=mask)


@triton.jit
def all_but_one(out, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(out + i, 1.0, mask=i < n - 1)


@triton.jit
def all_but_the_first(x, out, n, B: tl.constexpr, FROM: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B) + FROM
    tl.store(out + i, tl.load(x + i, mask=i < n), mask=i < n)


@triton.jit
def rows_but_their_last(x, out, columns, C: tl.constexpr):
    c = tl.arange(0, C)
    mask = c < columns - 1
    start = tl.program_id(0) * columns
    tl.store(out + start + c, tl.load(x + start + c, mask=mask).to(out.dtype.element_ty), mask=mask)


@triton.jit
def differences(x, out, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    both = i + 1 < n
    tl.store(out + i, tl.load(x + i + 1, mask=both) - tl.load(x + i, mask=both), mask=both)


@triton.jit
def rows_below(out, rows, columns, R: tl.constexpr, C: tl.constexpr):
    r, c = tl.program_id(0) * R + tl.arange(0, R)[:, None], tl.arange(0, C)[None, :]
    tl.store(out + r * columns + c, 1.0, mask=(r < rows) & (c < columns) & (c < r))


@triton.jit
def lower_triangle(out, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(out + i[:, None] * B + i[None, :], 1.0, mask=i[:, None] >= i[None, :])


@triton.jit
def triangles(out, B: tl.constexpr):
    row = tl.program_id(0)
    for column in range(row % B + 1):
        tl.store(out + row * B + column, 1.0)


@triton.jit
def slots(out, slot, used, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(out + tl.program_id(0) * slot + i, 1.0, mask=i < used)


@triton.jit
def scattered(index, out, n, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(out + tl.load(index + i), 1.0)


def found(run: Callable[[], Any]) -> list[str]:
    with bragg.debug.check(only=["unwritten"]) as report:
        run()
    return [f"{finding.message}; {finding.example}" for finding in report]


def ones(*shape: int) -> Any:
    return np.ones(shape, "f4")


def empty(*shape: int) -> Any:
    return np.empty(shape, "f4")


@triton.jit
def spread(x, out, n, STEP: tl.constexpr, FIRST: tl.constexpr, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(out + FIRST + STEP * i, tl.load(x + i, mask=i < n, other=0.0), mask=i < n)


def test_lanes_that_are_as_far_apart_as_elements_have_bytes() -> None:
    with bragg.debug.check(only=["unwritten"]) as report:
        spread[(4,)](ones(50), empty(200), 50, STEP=4, FIRST=0, B=16)
    (finding,) = report
    assert finding.example == "the first is out[1], the last out[195]"
    assert finding.hint == (
        "Neighbouring lanes of the store are 4 elements apart: a pointer of Triton counts elements, not bytes"
    )


def test_lanes_in_slots_of_another_size_are_meant() -> None:
    assert not found(lambda: spread[(4,)](ones(50), empty(150), 50, STEP=3, FIRST=0, B=16))


def test_two_stores_that_take_turns_leave_no_gaps() -> None:
    def run() -> None:
        out = empty(100)
        for first in range(2):
            spread[(4,)](ones(50), out, 50, STEP=2, FIRST=first, B=16)

    assert not found(run)


def test_tail_that_the_grid_leaves_out() -> None:
    assert found(lambda: doubled[(1000 // 128,)](ones(1000), empty(1000), 1000, B=128)) == [
        "104 of 1000 elements of out are written by nobody, and their neighbours are;"
        " the first is out[896], the last out[999]"
    ]


def test_gaps_between_tiles() -> None:
    (text,) = found(lambda: doubled[(4,)](ones(1000), empty(1000), 1000, B=128, STEP=256))
    assert text.startswith("488 of 1000 ")
    assert text.endswith("the first is out[128], the last out[999]")


def copy(grid: tuple[int, int], out: Any, rows: int = 96, columns: int = 64) -> None:
    copied[grid](ones(rows, columns), out, rows, columns, columns, out.strides[0] // 4, R=32, C=32)


@pytest.mark.parametrize("grid", [(2, 2), (3, 1)])
def test_tiles_that_the_grid_leaves_out(grid: tuple[int, int]) -> None:
    (text,) = found(lambda: copy(grid, empty(96, 64)))
    assert text.startswith(f"{96 * 64 - grid[0] * grid[1] * 1024} of 6144 ")


def test_tiles_of_a_grid_whose_axes_are_swapped() -> None:
    (text,) = found(lambda: copied_by_swapped_programs[(4, 2)](ones(64, 32), empty(64, 32), 64, 32, R=16, C=16))
    assert text.startswith("1024 of 2048 ")


def test_columns_whose_count_is_the_stride_of_the_rows_too() -> None:
    (text,) = found(lambda: copied[(3, 2)](ones(40, 40), empty(40, 40), 40, 40, 40, 40, R=16, C=16))
    assert text.endswith("the first is out[0, 32], the last out[39, 39]")


def test_last_elements_that_a_mask_leaves_out_by_its_own_subtraction() -> None:
    (text,) = found(lambda: all_but_one[(4,)](empty(200), 200, B=64))
    assert text.endswith("the first is out[199], the last out[199]")
    assert len(found(lambda: differences[(4,)](ones(200), empty(200), 200, B=64))) == 1


def test_the_mask_that_leaves_out_elements_is_shown_and_to_be_changed() -> None:
    with bragg.debug.check(only=["unwritten"]) as report:
        all_but_one[(4,)](empty(200), 200, B=64)
    (finding,) = report
    assert (finding.address, finding.mask) == ("out + i", "i < n - 1")
    assert (
        finding.hint == "The mask i < n - 1 leaves them out, and there are lanes for them: compare the index with 200"
    )
    with bragg.debug.check(only=["unwritten"]) as report:
        doubled[(7,)](ones(1000), empty(1000), 1000, B=128)
    (finding,) = report
    assert finding.mask == "i < n"
    assert finding.hint.startswith("Start a program for each tile")


@pytest.mark.parametrize(
    "run",
    [
        lambda: differences[(4,)](ones(200), empty(199), 200, B=64),
        lambda: rows_below[(3,)](empty(40, 40), 40, 40, R=16, C=64),
        lambda: copied_by_swapped_programs[(2, 4)](ones(64, 32), empty(64, 32), 64, 32, R=16, C=16),
        lambda: copied_by_swapped_programs[(4, 4)](ones(40, 40), empty(64, 40), 40, 40, R=16, C=16),
        lambda: copy((3, 2), empty(96, 64)),
        lambda: copy((3, 2), empty(96, 72)),
        lambda: copy((3, 2), empty(96, 72)[:, :64]),
        lambda: copy((3, 2), empty(128, 64)),
        lambda: copy((2, 2), np.zeros((96, 64), "f4")),
        lambda: doubled[(8,)](ones(1000), empty(1024), 1000, B=128),
        lambda: doubled[(2,)](ones(1000), empty(1000), 200, B=128),
        lambda: lower_triangle[(1,)](empty(32, 32), B=32),
        lambda: triangles[(64,)](empty(64, 16), B=16),
        lambda: slots[(4,)](empty(4 * 40), 40, 30, B=32),
        lambda: scattered[(1,)](np.arange(0, 64, 2), empty(100), 100, B=32),
    ],
    ids=[
        "differences",
        "below",
        "swapped",
        "idle",
        "whole",
        "padded",
        "view",
        "more-rows",
        "initialised",
        "aligned",
        "part",
        "triangle",
        "triangles",
        "slots",
        "scattered",
    ],
)
def test_tensors_that_are_larger_on_purpose(run: Callable[[], Any]) -> None:
    assert found(run) == []


def test_what_others_write_later_is_written() -> None:
    def by_another_launch() -> None:
        out = empty(1000)
        doubled[(7,)](ones(1000), out, 1000, B=128)
        doubled[(1,)](ones(104), out[896:], 104, B=128)

    def by_the_host() -> None:
        out = empty(1000)
        doubled[(7,)](ones(1000), out, 1000, B=128)
        out[896:] = 0

    assert found(by_another_launch) == []
    assert found(by_the_host) == []


def test_tensors_of_pytorch_whose_memory_is_gone() -> None:
    torch = pytest.importorskip("torch")

    def run() -> None:
        out = torch.empty(1000)
        doubled[(7,)](torch.ones(1000), out, 1000, B=128)
        out.untyped_storage().resize_(0)

    assert found(run) == []
    assert len(found(lambda: doubled[(7,)](torch.ones(1000), torch.empty(1000), 1000, B=128))) == 1


@pytest.mark.parametrize("name", ["float8_e4m3fn", "int8", "int16"])
def test_single_elements_of_small_types(name: str) -> None:
    torch = pytest.importorskip("torch")
    dtype = getattr(torch, name)

    def run() -> None:
        out = torch.empty(7, 130, dtype=dtype)
        rows_but_their_last[(7,)](torch.ones(7, 130), out, 130, C=256)

    expected = "7 of 910 elements of out are written by nobody, and their neighbours are; "
    assert found(run) == [expected + "the first is out[0, 129], the last out[6, 129]"]


def test_small_types_that_others_write_too() -> None:
    torch = pytest.importorskip("torch")

    def run(first: bool) -> None:
        out = torch.empty(1024, dtype=torch.uint8)
        halves = [(out[:512], 0), (out[512:], 512)]
        for half, _ in halves if first else halves[::-1]:
            doubled[(4,)](torch.arange(512).to(torch.uint8), half, 512, B=128)

    assert found(lambda: run(first=True)) == found(lambda: run(first=False)) == []

    def whole_tensor_in_halves() -> None:
        out = torch.empty(1024, dtype=torch.uint8)
        doubled[(4,)](torch.arange(512).to(torch.uint8), out, 512, B=128)
        doubled[(8,)](torch.arange(1024).to(torch.uint8), out, 1024, B=128)

    assert found(whole_tensor_in_halves) == []


def test_a_begin_that_is_left_out() -> None:
    def run(first: int) -> None:
        all_but_the_first[(8,)](ones(1000), empty(1000), 1000, B=128, FROM=first)

    expected = "1 of 1000 elements of out are written by nobody, and their neighbours are; "
    assert found(lambda: run(1)) == [expected + "the first is out[0], the last out[0]"]
    assert found(lambda: run(0)) == []

    def by_the_host() -> None:
        out = empty(1000)
        all_but_the_first[(8,)](ones(1000), out, 1000, B=128, FROM=1)
        out[0] = 0

    assert found(by_the_host) == []
