# ruff: noqa: N803 - constants of a kernel are capitals, as in Triton's own code
"""Findings of one defect are told together."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("triton")

import triton
import triton.language as tl

import bragg.debug


@triton.jit
def stores_without_a_mask(out, batch, head, row, B: tl.constexpr, D: tl.constexpr):
    rows, d = tl.program_id(0) * B + tl.arange(0, B), tl.arange(0, D)
    value = tl.program_id(0) + tl.zeros((B, D), tl.float32) + tl.program_id(1)
    place = out + (tl.program_id(1) // 2) * batch + (tl.program_id(1) % 2) * head
    tl.store(place + rows[:, None] * row + d[None, :], value)


@triton.jit
def wraps(x, out, stride, B: tl.constexpr):
    i = tl.arange(0, B)
    place = tl.program_id(0) * 1000 * stride + i
    tl.store(out + tl.program_id(0) * B + i, tl.load(x + place % 64))


@triton.jit
def adds_under_no_lock(sums, others, count, n, B: tl.constexpr):
    i = tl.arange(0, B)
    a = tl.zeros((B,), tl.float32) + 1 + tl.program_id(0)
    b = a + 1
    if tl.load(count) == 0:
        tl.atomic_xchg(count, 1)
    else:
        a += tl.load(sums + i)
        b += tl.load(others + i)
    tl.store(sums + i, a)
    tl.store(others + i, b)


def report_of(kernel: Any, grid: Any, *arguments: Any, **constants: Any) -> Any:
    with bragg.debug.check() as report:
        kernel[grid](*arguments, **constants)
    return report


def headers(report: Any) -> list[str]:
    return [line.split(" in ")[0] for line in report.finding_lines() if line.startswith(("error", "warning", "note"))]


def test_a_missing_mask_is_one_finding() -> None:
    out = np.zeros((2, 10, 2, 16), "f4")
    report = report_of(stores_without_a_mask, (2, 4), out, 320, 16, 32, B=8, D=16)
    assert {finding.rule for finding in report} == {"out-of-bounds", "data-race"}
    assert headers(report) == ["error: out-of-bounds"]
    assert report.summary().startswith("1 error (")


def test_an_access_by_a_number_that_wraps_follows_from_it() -> None:
    report = report_of(wraps, (8,), np.zeros(64, "f4"), np.zeros(8 * 16, "f4"), 400_000, B=16)
    assert [finding.rule for finding in report] == ["integer-overflow", "out-of-bounds"]
    line = wraps.fn.__code__.co_firstlineno + 4
    more = f"  1 more may follow from it, so check again when it is mended: out-of-bounds at line {line} (x)"
    assert headers(report) == ["error: integer-overflow"]
    assert more in report.finding_lines()
    assert report.summary() == "1 error (1 more may follow) in 1 launch of 8 programs"


def test_a_lock_that_is_missing_is_one_finding() -> None:
    sums, others = np.empty(32, "f4"), np.empty(32, "f4")
    report = report_of(adds_under_no_lock, (16,), sums, others, np.zeros(1, "i4"), 32, B=32)
    assert len(report) > 3
    assert headers(report) == ["error: data-race"]
