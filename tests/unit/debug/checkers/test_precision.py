"""A few roundings to the narrowest type of a statement are no loss of digits."""

from __future__ import annotations

import numpy as np
import pytest

import bragg.debug

pytest.importorskip("triton")

import triton
import triton.language as tl


@triton.jit
def distances_from_one(x, out, BLOCK: tl.constexpr):  # noqa: N803
    i = tl.arange(0, BLOCK)
    apart = tl.load(x + i).to(tl.float16).to(tl.float32) - 1.0
    tl.store(out + i, apart)


@pytest.mark.parametrize(("steps", "is_lost"), [(205.5, False), (20.5, True)])
def test_a_type_that_is_narrow_within_a_line_counts(steps: float, is_lost: bool) -> None:
    x = np.full(16, 1 + steps * 2**-10, "f4")  # Halfway between two numbers of float16.
    with bragg.debug.check(only=["precision"]) as report:
        distances_from_one[(1,)](x, np.zeros(16, "f4"), BLOCK=16)
    assert bool(len(report)) is is_lost


@triton.jit
def differences_in_float16(x, y, out, BLOCK: tl.constexpr):  # noqa: N803
    i = tl.arange(0, BLOCK)
    apart = tl.load(x + i).to(tl.float16) - tl.load(y + i)
    tl.store(out + i, apart)


def test_the_cast_of_a_line_that_loses_digits_is_named() -> None:
    x, y = np.full(16, 1 + 20.5 * 2**-10, "f4"), np.ones(16, "f4")
    with bragg.debug.check(only=["precision"]) as report:
        differences_in_float16[(1,)](x, y, np.zeros(16, "f4"), BLOCK=16)
    found, advice = report.findings[0], "rounds to fp16: keep a wider type there if these digits matter"
    assert found.message == "digits are lost here first: with fp16 in this line the result is far from that of float64"
    assert found.hint == f"tl.load(x + i).to(tl.float16) {advice}"
    with bragg.debug.check(only=["precision"]) as report:
        distances_from_one[(1,)](x, np.zeros(16, "f4"), BLOCK=16)
    assert report.findings[0].hint == f"A value of this line {advice}"
