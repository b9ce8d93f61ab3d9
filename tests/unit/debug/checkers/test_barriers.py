# ruff: noqa: N803 - constants of a kernel are capitals, as in Triton's own code
"""Missing barriers between threads of one program."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("triton")

import triton
import triton.language as tl

import bragg.debug


@triton.jit
def all_store_their_number(x):
    tl.store(x, tl.program_id(0))


@triton.jit
def halves_exchanged(x, B: tl.constexpr):
    row, i = x + tl.program_id(0) * B, tl.arange(0, B)
    tl.store(row + i, tl.load(row + (i ^ (B // 2))))


def test_a_race_of_another_kernel_for_a_tensor_of_the_same_name_hides_nothing() -> None:
    with bragg.debug.check(only=["data-race", "missing-barrier"]) as report:
        all_store_their_number[(4,)](np.zeros(1, "f4"))
        halves_exchanged[(4,)](np.ones((4, 256), "f4"), 256)
    found = [(one.rule, one.kernel) for one in report]
    assert found == [("data-race", "all_store_their_number"), ("missing-barrier", "halves_exchanged")]
