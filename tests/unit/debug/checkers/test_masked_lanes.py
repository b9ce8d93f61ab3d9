# ruff: noqa: N803 - constants of a kernel are capitals, as in Triton's own code
"""Lanes that a mask leaves out, and that a reduction counts: found where they change a result, and nowhere else."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("triton")

import triton
import triton.language as tl

import bragg.debug

OTHER = tl.constexpr(0.0)


@triton.jit
def highest(x, out, n, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(out, tl.max(tl.load(x + i, mask=i < n, other=0.0), 0))


@triton.jit
def place_of_highest(x, out, n, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(out, tl.argmax(tl.load(x + i, mask=i < n, other=0.0), 0))


@triton.jit
def lowest(x, out, n, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(out, tl.min(tl.load(x + i, mask=i < n, other=0.0), 0))


@triton.jit
def sum_of_powers(x, out, n, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(out, tl.sum(tl.exp(tl.load(x + i, mask=i < n, other=0.0)), 0))


@triton.jit
def sum_with_infinity(x, out, n, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(out, tl.sum(tl.load(x + i, mask=i < n, other=-float("inf")), 0))


@triton.jit
def softmax(x, out, n, B: tl.constexpr):
    i = tl.arange(0, B)
    row = tl.load(x + i, mask=i < n, other=0.0)
    e = tl.exp(row - tl.max(row, 0))
    tl.store(out + i, e / tl.sum(e, 0), mask=i < n)


@triton.jit
def variance(x, out, n, B: tl.constexpr):
    i = tl.arange(0, B)
    row = tl.load(x + i, mask=i < n, other=0.0)
    apart = row - tl.sum(row, 0) / n
    tl.store(out, tl.sum(apart * apart, 0) / n)


@triton.jit
def highest_of_turns(x, out, n, B: tl.constexpr):
    best = tl.full((B,), -float("inf"), tl.float32)
    for start in range(0, n, B):
        i = start + tl.arange(0, B)
        best = tl.maximum(best, tl.load(x + i, mask=i < n, other=0.0))
    tl.store(out, tl.max(best, 0))


@triton.jit
def attention(q, k, v, out, n, B: tl.constexpr, D: tl.constexpr, IS_MASKED: tl.constexpr):
    rows, columns = tl.arange(0, B), tl.arange(0, D)
    place, mask = rows[:, None] * D + columns[None, :], rows[:, None] < n
    scores = tl.dot(tl.load(q + place, mask=mask, other=0.0), tl.trans(tl.load(k + place, mask=mask, other=0.0)))
    if IS_MASKED:
        scores = tl.where(rows[None, :] < n, scores, -float("inf"))
    e = tl.exp(scores - tl.max(scores, 1)[:, None])
    p = e / tl.sum(e, 1)[:, None]
    tl.store(out + place, tl.dot(p, tl.load(v + place, mask=mask, other=0.0)), mask=mask)


@triton.jit
def softmax_left_out_later(x, out, n, B: tl.constexpr):
    i = tl.arange(0, B)
    row = tl.load(x + i, mask=i < n, other=0.0)
    e = tl.where(i < n, tl.exp(row - tl.max(row, 0)), 0.0)
    tl.store(out + i, e / tl.sum(e, 0), mask=i < n)


@triton.jit
def variance_left_out(x, out, n, B: tl.constexpr):
    i = tl.arange(0, B)
    row = tl.load(x + i, mask=i < n, other=0.0)
    apart = tl.where(i < n, row - tl.sum(row, 0) / n, 0.0)
    tl.store(out, tl.sum(apart * apart, 0) / n)


@triton.jit
def highest_at_least_0(x, out, n, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(out, tl.maximum(tl.max(tl.load(x + i, mask=i < n, other=0.0), 0), 0.0))


@triton.jit
def sum_beside_a_wall(x, out, n, B: tl.constexpr):
    i = tl.arange(0, B)
    left = tl.load(x + i - 1, mask=(i > 0) & (i < n), other=20.0)
    own = tl.load(x + i, mask=i < n, other=0.0)
    tl.store(out, tl.max(tl.where(i < n, left + own, -float("inf")), 0))


@triton.jit
def neighbours_by_a_window(x, out, n, B: tl.constexpr):
    i = tl.arange(0, B)
    left = tl.load(x + i - 1, mask=(i > 0) & (i < n), other=0.0)
    own = tl.load(x + i, mask=i < n, other=-float("inf"))
    tl.store(out, tl.max(own + left, 0))


@triton.jit
def rows_beyond_the_last(x, out, n, B: tl.constexpr):
    i, j = tl.arange(0, B), tl.arange(0, 16)
    block = tl.load(x + i[:, None] * 16 + j[None, :], mask=i[:, None] < n, other=0.0)
    tl.store(out + i, tl.max(block, 1), mask=i < n)


def found(kernel: Any, size: int = 100, block: int = 128, **named: Any) -> list[Any]:
    x, out = -1 - np.random.default_rng(0).random(size, np.float32), np.zeros(size, np.float32)
    with bragg.debug.check() as report:
        kernel[(1,)](x, out, size, B=block, **named)
    return list(report)


@pytest.mark.parametrize(
    ("kernel", "fix"),
    [
        (highest, "other=-float('inf')"),
        (place_of_highest, "other=-float('inf')"),
        (lowest, "other=float('inf')"),
        (sum_of_powers, "other=-float('inf')"),
        (sum_with_infinity, "other=0"),
        (softmax, "other=-float('inf')"),
        (variance, "Give these lanes the value 0 before the reduction, with tl.where"),
    ],
)
def test_lanes_that_change_a_reduction_are_found_at_their_load(kernel: Any, fix: str) -> None:
    size = {lowest: 100}.get(kernel, 100)
    x = np.random.default_rng(0).random(size, np.float32) + 1
    x, out = x if kernel is lowest else -x, np.zeros(size, np.float32)
    with bragg.debug.check() as report:
        kernel[(1,)](x, out, size, B=128)
    (one,) = report
    assert one.rule == "masked-lanes"
    assert "tl.load" in one.code
    assert one.tensor.name == "x"
    assert one.hint.endswith(fix)


def test_the_result_is_told_with_and_without_the_lanes() -> None:
    x, out = np.array([-3, -1.5, -2], "f4"), np.zeros(1, "f4")
    with bragg.debug.check() as report:
        highest[(1,)](x, out, 3, B=4)
    (one,) = report
    assert one.example == "out[0] is 0.0, and -1.5 without these lanes"
    assert out.tolist() == [0]


def test_a_lane_that_wins_in_the_last_turn_of_a_loop_is_found() -> None:
    assert [one.rule for one in found(highest_of_turns, block=64)] == ["masked-lanes"]


def attended(is_masked: bool) -> list[str]:
    q, k, v, out = (np.random.default_rng(seed).normal(size=(20, 16)).astype("f4") for seed in range(4))
    with bragg.debug.check() as report:
        attention[(1,)](q, k, v, out, 20, B=32, D=16, IS_MASKED=is_masked)
    return [f"{one.rule} {one.tensor and one.tensor.name}" for one in report]


def test_keys_beyond_the_last_count_in_attention_unless_they_are_masked() -> None:
    assert attended(is_masked=False) == ["masked-lanes k"]
    assert attended(is_masked=True) == []


@pytest.mark.parametrize(
    "kernel",
    [
        softmax_left_out_later,
        variance_left_out,
        highest_at_least_0,
        sum_beside_a_wall,
        neighbours_by_a_window,
    ],
)
def test_lanes_that_do_no_harm_are_not_told(kernel: Any) -> None:
    assert found(kernel) == []


def test_rows_that_are_not_stored_do_no_harm() -> None:
    x, out = -np.ones((20, 16), "f4"), np.zeros(20, "f4")
    with bragg.debug.check() as report:
        rows_beyond_the_last[(1,)](x, out, 20, B=32)
    assert list(report) == []
    assert out.tolist() == [-1] * 20


def test_a_zero_that_does_not_win_is_no_finding() -> None:
    x, out = np.ones(3, "f4"), np.zeros(1, "f4")
    with bragg.debug.check() as report:
        highest[(1,)](x, out, 3, B=4)
    assert list(report) == []
