# ruff: noqa: N803 - constants of a kernel are capitals, as in Triton's own code
"""Columns that nobody reads are noted where a mask compares them with another axis' extent, and nowhere else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import bragg.debug

pytest.importorskip("triton")

import triton
import triton.language as tl


@triton.jit
def sums_of_few(x, out, rows, columns, stride, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    value = tl.load(x + tl.program_id(0) * stride + i, mask=i < rows, other=0.0)  # the load
    tl.store(out + tl.program_id(0), tl.sum(value))


@triton.jit
def sums(x, out, rows, columns, stride, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    value = tl.load(x + tl.program_id(0) * stride + i, mask=i < columns, other=0.0)
    tl.store(out + tl.program_id(0), tl.sum(value))


@triton.jit
def sums_of_tiles(x, out, rows, columns, stride, BLOCK: tl.constexpr):
    r, c = tl.arange(0, BLOCK)[:, None], tl.arange(0, BLOCK)[None, :]
    value = tl.load(x + r * stride + c, mask=(r < rows) & (c < columns), other=0.0)
    tl.store(out + tl.arange(0, BLOCK), tl.sum(value, 1), mask=tl.arange(0, BLOCK) < rows)


@triton.jit
def sums_of_lengths(x, lengths, out, rows, columns, stride, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    mask = (i < rows) & (i < tl.load(lengths + tl.program_id(0)))
    value = tl.load(x + tl.program_id(0) * stride + i, mask=mask, other=0.0)
    tl.store(out + tl.program_id(0), tl.sum(value))


def report_of(kernel: Any, rows: int = 6, columns: int = 10, told: int = 10, programs: int = 6) -> Any:
    with bragg.debug.check() as report:
        kernel[(programs,)](np.ones((rows, columns), "f4"), np.zeros(rows, "f4"), rows, told, columns, BLOCK=16)
    assert not len(report)
    return report


def test_columns_beyond_the_extent_of_another_axis_are_noted() -> None:
    report = report_of(sums_of_few)
    line = sums_of_few.fn.__code__.co_firstlineno + 3
    note = (
        "sums_of_few: 4 of 10 columns of x are read by no program: the mask i < rows (test_unread.py:"
        f"{line}) compares with 6, the extent of axis 0"
    )
    assert f"note: {note}" in report.lines()
    assert report.to_json()["notes"] == [note]


@pytest.mark.parametrize(
    "run",
    [
        lambda: report_of(sums),
        lambda: report_of(sums, programs=3),
        lambda: report_of(sums_of_tiles, programs=1),
        lambda: report_of(sums_of_few, told=6),
        lambda: report_of(sums_of_few, rows=10),
    ],
    ids=["all", "some rows", "tiles", "padded rows", "square"],
)
def test_what_is_read_as_it_is_meant_has_no_note(run: Callable[[], Any]) -> None:
    assert run().to_json()["notes"] == []


def test_a_mask_may_compare_with_a_tensor() -> None:
    with bragg.debug.check() as report:
        lengths = np.full(6, 5, "i4")
        sums_of_lengths[(6,)](np.ones((6, 10), "f4"), lengths, np.zeros(6, "f4"), 6, 10, 10, BLOCK=16)
    assert report.to_json()["notes"] == []
