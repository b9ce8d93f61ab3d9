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
