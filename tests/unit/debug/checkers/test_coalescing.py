"""Accesses are wasteful by what each program touches, not by what programs that run together do."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import bragg.debug

pytest.importorskip("triton")

import triton
import triton.language as tl


@triton.jit
def sums(x, out, N: tl.constexpr):  # noqa: N803
    program = tl.program_id(0)
    tl.store(out + program, tl.sum(tl.load(x + program * N + tl.arange(0, N))))


@triton.jit
def first_columns(x, out, N: tl.constexpr):  # noqa: N803
    program, i = tl.program_id(0), tl.arange(0, 32)
    tl.store(out + program * 32 + i, tl.load(x + program * 32 * N + i * N))


def findings_of(kernel: Any, out: Any) -> list[tuple[str, int]]:
    with bragg.debug.check(only=["uncoalesced"]) as report:
        kernel[(64,)](np.ones((64 * 32, 16), "f4"), out, N=16)
    return [(finding.rule, finding.lanes) for finding in report]


def test_one_value_of_each_of_many_programs_wastes_nothing() -> None:
    assert findings_of(sums, np.zeros(64, "f4")) == []


def test_a_column_of_each_of_many_programs_is_found() -> None:
    assert findings_of(first_columns, np.zeros(64 * 32, "f4")) == [("uncoalesced", 64 * 32)]


@triton.jit
def beyond(x, out, n, BLOCK: tl.constexpr):  # noqa: N803
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i + 64), mask=i < n)


def test_an_access_without_a_lane_inside_its_tensor_touches_nothing() -> None:
    with bragg.debug.check(add=["uncoalesced"]) as report:
        beyond[(1,)](np.ones(10, "f4"), np.zeros(8, "f4"), 8, BLOCK=8)
    assert [finding.rule for finding in report] == ["out-of-bounds"]


@triton.jit
def tile(x, out, columns, N: tl.constexpr):  # noqa: N803
    r, c = tl.arange(0, 32)[:, None], tl.program_id(0) * N + tl.arange(0, N)[None, :]
    where, mask = r * columns + c, c < columns
    tl.store(out + where, tl.load(x + where, mask=mask), mask=mask)


def test_the_last_columns_of_a_tensor_leave_a_tile_narrow() -> None:
    with bragg.debug.check(only=["uncoalesced"]) as report:
        tile[(2,)](np.ones((32, 66), "f4"), np.zeros((32, 66), "f4"), 66, N=64)
    assert list(report) == []


@triton.jit
def first_fields(x, out, STEP: tl.constexpr, B: tl.constexpr):  # noqa: N803
    i = tl.arange(0, B)
    tl.store(out + i, tl.load(x + i * STEP))


def fix_of(tensor: Any, step: int) -> str:
    with bragg.debug.check(only=["uncoalesced"]) as report:
        first_fields[(1,)](tensor, np.zeros(64, "f4"), STEP=step, B=64)
    (finding,) = report
    return str(finding.hint)


def test_the_fix_of_structures_in_a_row_is_an_array_for_each_field() -> None:
    assert fix_of(np.ones(512, "f4"), 8) == (
        "Neighbouring lanes are 8 elements of x apart: keep each field of such structures in a tensor of its own, or"
        " load all 8 in one block"
    )


def test_the_fix_of_a_view_without_neighbours_is_a_contiguous_one() -> None:
    assert fix_of(np.ones((64, 16), "f4")[:, 0], 16) == "Elements of x are 16 apart in memory: make it contiguous"


def test_the_fix_of_a_column_of_a_matrix_is_the_other_axis() -> None:
    fix = "Let the last axis of the block run along the axis of the tensor whose stride is 1"
    assert fix_of(np.ones((64, 16), "f4"), 16) == fix
