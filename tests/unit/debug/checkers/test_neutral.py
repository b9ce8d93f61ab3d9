# ruff: noqa: N803 - constants of a kernel are capitals, as in Triton's own code
"""The value that masked lanes are to get is one that changes nothing where the load goes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("triton")

import triton
import triton.language as tl

import bragg.debug

GIVE = "Give the load a value for these lanes"


@triton.jit
def softmax(x, out, n, B: tl.constexpr):
    i = tl.arange(0, B)
    row = tl.load(x + i, mask=i < n)
    e = tl.exp(row - tl.max(row, 0))
    tl.store(out + i, e / tl.sum(e, 0), mask=i < n)


@triton.jit
def highest(x, out, n, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(out, tl.max(tl.load(x + i, mask=i < n), 0))


@triton.jit
def highest_size(x, out, n, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(out, tl.max(tl.abs(tl.load(x + i, mask=i < n)), 0))


@triton.jit
def lowest(x, out, n, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(out, tl.min(tl.load(x + i, mask=i < n), axis=0))


@triton.jit
def sum_of_squares(x, out, n, B: tl.constexpr):
    i = tl.arange(0, B)
    row = tl.load(x + i, mask=i < n).to(tl.float32)
    tl.store(out, tl.sum(row * row, 0))


@triton.jit
def scaled_maximum(x, out, n, B: tl.constexpr):
    i = tl.arange(0, B)
    row = tl.load(x + i, mask=i < n) * n
    tl.store(out, tl.max(row, 0))


@triton.jit
def range_and_sum(x, out, n, B: tl.constexpr):
    i = tl.arange(0, B)
    row = tl.load(x + i, mask=i < n)
    tl.store(out, tl.max(row, 0) + tl.sum(row, 0))


@triton.jit
def stored(x, out, n, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(out + i, tl.load(x + i, mask=i < n))


@triton.jit
def squashed(x, out, n, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(out + i, tl.sigmoid(tl.load(x + i, mask=i < n)))


def hints_of(kernel: Any, dtype: str = "f4") -> set[str]:
    with bragg.debug.check() as report:
        kernel[(1,)](np.arange(1, 21).astype(dtype), np.zeros(32, dtype), 20, B=32)
    return {finding.hint for finding in report if finding.rule == "uninitialised-read"}


@pytest.mark.parametrize(
    ("kernel", "dtype", "hint"),
    [
        (softmax, "f4", f"{GIVE}, which goes into tl.exp and tl.max: other=-float('inf')"),
        (highest, "f4", f"{GIVE}, which goes into tl.max: other=-float('inf')"),
        (highest, "i4", f"{GIVE}, which goes into tl.max: other=-2147483648"),
        (highest, "u1", f"{GIVE}, which goes into tl.max: other=0"),
        (highest_size, "f4", f"{GIVE}, which goes into tl.max: other=0"),
        (lowest, "f4", f"{GIVE}, which goes into tl.min: other=float('inf')"),
        (sum_of_squares, "f4", f"{GIVE}, which goes into tl.sum: other=0"),
        (scaled_maximum, "f4", "Give these lanes the value -float('inf') before tl.max, with tl.where"),
        (
            range_and_sum,
            "f4",
            "Give these lanes the value that each use needs, with tl.where:"
            " -float('inf') before tl.max, 0 before tl.sum",
        ),
        (stored, "f4", f"{GIVE}: other=0"),
        (
            squashed,
            "f4",
            f"{GIVE} that leaves the result as it is: other=0 for a sum, other=-float('inf') for a maximum or exp",
        ),
    ],
)
def test_what_lanes_should_hold_depends_on_where_the_value_goes(kernel: Any, dtype: str, hint: str) -> None:
    assert hints_of(kernel, dtype) == {hint}
