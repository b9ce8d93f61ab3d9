# ruff: noqa: N803 - constants of a kernel are capitals, as in Triton's own code
"""NaN and infinity: what one operation gives for its inputs, and what a kernel makes on its way."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("triton")

import triton
import triton.language as tl

import bragg.debug


@triton.jit
def quotient(x, y, out, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(out + i, tl.load(x + i) / tl.load(y + i))


@triton.jit
def square_root(x, y, out, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    root = tl.sqrt(tl.load(x + i))
    tl.store(out + i, root.to(tl.float16))


@triton.jit
def half_of_wide_integers(x, y, out, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(out + i, tl.load(x + i).to(tl.int32) * 100000 + tl.load(y + i).to(tl.float16))


@triton.jit
def normalised(x, y, out, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    values = tl.load(x + i)
    tl.store(out + i, values / (tl.load(y + i) * 2))


@triton.jit
def copied_and_normalised(x, y, out, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    values = tl.load(x + i)
    tl.store(out + i, values + 1)
    tl.store(out + i, values / tl.sum(values, 0))


def findings(kernel: Any, x: list[float], y: list[float]) -> list[str]:
    values, others, out = np.array(x * 4, "f4"), np.array(y * 4, "f4"), np.zeros(len(x) * 4, "f4")
    with bragg.debug.check() as report, np.errstate(all="ignore"):
        kernel[(4,)](values, others, out, B=len(x))
    return [f"{finding.rule}: {finding.code}" for finding in report]


@pytest.mark.parametrize(
    ("kernel", "x", "y"),
    [(quotient, [1, 0], [0, 0]), (square_root, [-1, 4], [1, 1]), (half_of_wide_integers, [1, 2], [1, 2])],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_one_operation_gives_what_it_has_for_its_inputs(kernel: Any, x: list[float], y: list[float]) -> None:
    assert findings(kernel, x, y) == []


def test_what_is_computed_before_is_the_kernels_own() -> None:
    (found,) = findings(normalised, [1, 2], [0, 1])
    assert found.startswith("nan-result: tl.store(out + i, values / (tl.load(y + i) * 2))")


def test_what_was_stored_before_does_not_count_for_the_next_store() -> None:
    (found,) = findings(copied_and_normalised, [1, -1], [0, 0])
    assert found == "nan-result: tl.store(out + i, values / tl.sum(values, 0))"


@triton.jit
def weighs_rows(x, out, top, first, B: tl.constexpr):
    i = tl.arange(0, B)
    values = tl.where(i[None, :] < i[:, None] + first, tl.load(x + i[:, None] * B + i[None, :]), -float("inf"))
    largest = tl.max(values, 1)
    weights = tl.exp(values - largest[:, None])
    tl.store(out + i, tl.sum(weights, 1))
    tl.store(top + i, largest + tl.log(tl.sum(weights, 1)))


def test_a_row_without_a_lane_that_counts_is_the_cause_of_its_nan_and_told_once() -> None:
    x, out, top = np.ones((4, 4), "f4"), np.zeros(4, "f4"), np.zeros(4, "f4")
    with bragg.debug.check() as report:
        weighs_rows[(1,)](x, out, top, 0, B=4)
    line = weighs_rows.fn.__code__.co_firstlineno + 5
    first = next(iter(report))
    assert (first.rule, first.line, first.message) == (
        "nan-result",
        line,
        "NaN is made here as -inf - -inf, and stored to out",
    )
    assert first.hint == (
        "The maximum of a row in which no lane counts is -inf: subtract 0 there, tl.where(m == -float('inf'), 0, m)"
    )
    assert report.summary() == "1 warning (1 more may follow) in 1 launch of 1 program"
    with bragg.debug.check() as report:
        weighs_rows[(1,)](x, out, top, 1, B=4)
    assert report.summary() == "no findings in 1 launch of 1 program"
