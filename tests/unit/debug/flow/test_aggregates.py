# ruff: noqa: N803 - constants of a kernel are capitals, as in Triton's own code
"""Values made of several others go through calls, branches and loops as one."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest

import bragg.debug
from bragg.debug.faults import KernelFault

triton = pytest.importorskip("triton")
import triton.language as tl  # noqa: E402

aggregate = getattr(tl, "aggregate", None) or tl.core._aggregate
constexpr_function = getattr(triton, "constexpr_function", None) or tl.constexpr_function


def run(kernel: Any, *arguments: Any, programs: int = 4, **named: Any) -> None:
    bragg.debug.interpret(kernel)[(programs,)](*arguments, **named)


@aggregate
class Range:
    low: tl.tensor
    high: tl.tensor
    SCALE: tl.constexpr

    @constexpr_function
    def __init__(self, low, high, SCALE):
        self.low = low
        self.high = high
        self.SCALE = tl.constexpr(SCALE)

    @triton.jit
    def width(self):
        return (self.high - self.low) * self.SCALE

    @triton.jit
    def grown(self, by):
        return Range(self.low - by, self.high + by, self.SCALE)


@triton.jit
def widths(out):
    pid = tl.program_id(0)
    span = Range(pid, pid + 1, 10)
    if pid % 2 == 0:
        span = span.grown(pid)
    for _ in range(pid):
        span = span.grown(1)
    tl.store(out + pid, span.width() + span.low)


def test_aggregate_changes_in_branches_and_loops() -> None:
    out = np.zeros(4, np.int32)
    run(widths, out)
    expected = []
    for pid in range(4):
        by = (pid if pid % 2 == 0 else 0) + pid
        expected.append((1 + 2 * by) * 10 + pid - by)
    assert out.tolist() == expected


@aggregate
class Scheduler:
    start: tl.tensor
    end: tl.tensor

    @constexpr_function
    def __init__(self, start, end):
        self.start = start
        self.end = end

    @triton.jit
    def of(total):  # noqa: N805 - belongs to the class
        each = tl.cdiv(total, tl.num_programs(0))
        start = tl.program_id(0) * each
        return Scheduler(start, tl.minimum(start + each, total))

    @triton.jit
    def tile(self, place):
        return self.start + place


@triton.jit
def scheduled(out, total, Choice: tl.constexpr):
    scheduler = Choice.of(total)
    for place in range(scheduler.end - scheduler.start):
        tile = scheduler.tile(place)
        tl.store(out + tile, tl.program_id(0) * 100 + tile)


def test_class_is_passed_as_a_constant_and_makes_its_own_values() -> None:
    out = np.zeros(10, np.int32)
    run(scheduled, out, 10, Scheduler)
    assert out.tolist() == [place // 3 * 100 + place for place in range(10)]


@triton.jit
def unknown_part(out):
    tl.store(out, Range(1, 2, 3).middle)


def test_part_that_does_not_exist_is_named() -> None:
    with pytest.raises(KernelFault, match="Range has no part or function middle"):
        run(unknown_part, np.zeros(1, np.int32))


class Matrix(NamedTuple):
    data: Any
    rows: Any
    columns: Any


@triton.jit
def total_of(matrix, row):
    j = tl.arange(0, 4)
    return tl.sum(tl.load(matrix.data + row * matrix.columns + j, mask=j < matrix.columns, other=0))


@triton.jit
def totals(matrix, out):
    pid = tl.program_id(0)
    best = Matrix(matrix.data, pid, matrix.columns)
    if pid == 1:
        best = Matrix(matrix.data + matrix.columns, pid + 0, matrix.columns)
    tl.store(out + pid, total_of(matrix, pid) + 100 * total_of(best, 0))


def test_named_tuple_from_the_host_and_in_the_kernel() -> None:
    x, out = np.arange(12, dtype=np.int32).reshape(4, 3), np.zeros(4, np.int32)
    run(totals, Matrix(x, 4, 3), out)
    assert out.tolist() == [int(x[p].sum() + 100 * x[1 if p == 1 else 0].sum()) for p in range(4)]


@triton.jit
def first_and_last(values):
    return values[0], values[-1]


@triton.jit
def tuples_of_tuples(pointers, out):
    pid = tl.program_id(0)
    (x, y), z = pointers
    loaded = (tl.load(x + pid), tl.load(y + pid))
    for k in tl.static_range(2):
        loaded = (loaded[1], loaded[0] + k)
    tl.store(out + pid, loaded[0] * 10 + loaded[1] + tl.load(z + pid) * 0)


def test_nested_tuples_of_pointers() -> None:
    x, y, z, out = (np.arange(4, dtype=np.int32) + k for k in (1, 5, 0, 0))
    run(tuples_of_tuples, ((x, y), z), out)
    expected = []
    for a, b in zip((np.arange(4) + 1).tolist(), (np.arange(4) + 5).tolist(), strict=True):
        loaded = (a, b)
        for k in range(2):
            loaded = (loaded[1], loaded[0] + k)
        expected.append(loaded[0] * 10 + loaded[1])
    assert out.tolist() == expected


@triton.jit
def lists(x, y, z, out):
    pid = tl.program_id(0)
    pointers = [x, y, z]
    values = [tl.load(pointer + pid) for pointer in pointers]
    low, (_, high) = values[0], first_and_last(values)
    pair = (low, high)
    if pid > 1:
        pair = (high, low)
    both = (*pair, values[1])
    tl.store(out + pid, both[0] * 100 + both[1] * 10 + both[2])


def test_lists_are_tuples_and_comprehensions_go_over_them() -> None:
    x, y, z = (np.arange(4, dtype=np.int32) % 3 + k for k in (1, 3, 5))
    out = np.zeros(4, np.int32)
    run(lists, x, y, z, out)
    low, high = np.where(np.arange(4) > 1, z, x), np.where(np.arange(4) > 1, x, z)
    assert out.tolist() == (low * 100 + high * 10 + y).tolist()


@triton.jit
def assigns_to_a_part(out):
    values = (1, 2)
    values[0] = 3
    tl.store(out, values[0])


def test_assignment_to_a_part_is_refused_with_its_line() -> None:
    with pytest.raises(KernelFault, match=r"test_aggregates.py:\d+: Triton does not compile `values\[0\] = 3`"):
        run(assigns_to_a_part, np.zeros(1, np.int32))


@aggregate
class Pair:
    first: tl.tensor
    second: tl.tensor

    @triton.constexpr_function
    def __init__(self, first, second):
        self.first = first
        self.second = second

    def __getitem__(self, index: tl.constexpr, _semantic=None):
        return self.second if index else self.first

    def taken(self, _semantic=None):
        return self.second


@triton.jit
def parts_by_number(out):
    pair = Pair(tl.program_id(0), 5)
    tl.store(out + pair[0], pair[0] * 10 + pair[1] + pair.taken())


def test_functions_of_a_class_that_leave_the_compiler_alone_are_called() -> None:
    out = np.zeros(4, np.int32)
    run(parts_by_number, out)
    assert out.tolist() == [10, 20, 30, 40]


if hasattr(tl, "aggregate_replace"):

    @aggregate
    class Options:
        scale: tl.tensor
        BIAS: tl.constexpr = 7

    @triton.jit
    def with_defaults(out):
        pid = tl.program_id(0)
        options = Options(pid * 2)
        changed = tl.aggregate_replace(options, scale=options.scale + 1)
        tl.store(out + pid, changed.scale * 10 + changed.BIAS)

    def test_aggregate_without_a_constructor_has_defaults_and_is_copied_with_changes() -> None:
        out = np.zeros(4, np.int32)
        run(with_defaults, out)
        assert out.tolist() == [(2 * p + 1) * 10 + 7 for p in range(4)]
