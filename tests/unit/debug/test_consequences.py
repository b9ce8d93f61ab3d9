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


@triton.jit
def adds_to_what_nobody_wrote(c, B: tl.constexpr):
    i = tl.arange(0, B)
    old = tl.load(c + i)
    tl.store(c + i, old + 1.0 + tl.program_id(0))


@triton.jit
def sums_of_the_programs_before(x, y, part, flag, B: tl.constexpr):
    p = tl.program_id(0)
    i = p * B + tl.arange(0, B)
    values = tl.load(x + i)
    before = tl.zeros((), tl.int32)
    if p > 0:
        while tl.atomic_add(flag + p - 1, 0) == 0:
            pass
        before = tl.load(part + p - 1)
    tl.atomic_xchg(flag + p, 1)
    tl.store(part + p, before + tl.sum(values, 0))
    tl.store(y + i, before + tl.cumsum(values, 0))


def test_memory_that_every_writer_reads_first_is_a_defect_beside_a_race_on_it() -> None:
    with bragg.debug.check() as report:
        adds_to_what_nobody_wrote[(4,)](np.empty(16, "f4"), B=16)
    assert set(headers(report)) == {"error: data-race", "error: uninitialised-read"}
    assert report.summary() == "2 errors in 1 launch of 4 programs"
    read = next(one for one in report if one.rule == "uninitialised-read")
    assert read.hint == "Write the tensor first, or make it with zeros instead of empty"


def look_back(checkers: tuple[str, ...] = ()) -> Any:
    with bragg.debug.check(only=checkers) as report:
        x, part = np.arange(64, dtype="i4"), np.empty(4, "i4")
        sums_of_the_programs_before[(4,)](x, np.empty_like(x), part, np.zeros(4, "i4"), B=16)
    return report


def test_a_read_that_comes_before_the_write_of_another_program_follows_from_the_race() -> None:
    report = look_back()
    line = sums_of_the_programs_before.fn.__code__.co_firstlineno + 9
    more = f"  1 more may follow from it, so check again when it is mended: uninitialised-read at line {line} (part)"
    assert headers(report) == ["error: data-race"]
    assert more in report.finding_lines()


def test_a_read_that_comes_too_early_is_not_mended_by_zeros() -> None:
    (read,) = look_back(("uninitialised-read",))
    assert (
        read.hint
        == "Let it wait until another program has written these elements; zeros would hide that it comes early"
    )


@triton.jit
def reads_the_next(part, out, n):
    p = tl.program_id(0)
    tl.store(out + p, tl.load(part + (p + 1) % 4) + 1)
    if p < n:
        tl.store(part + p, p)


@pytest.mark.parametrize(
    ("writers", "is_early"), [((4,), True), ((3,), False), ((4, 3), False), ((3, 4), False)], ids=str
)
def test_a_read_is_early_where_each_launch_writes_all_of_it(writers: tuple[int, ...], is_early: bool) -> None:
    with bragg.debug.check() as report:
        for n in writers:
            reads_the_next[(4,)](np.empty(4, "i4"), np.zeros(4, "i4"), n)
    (read,) = (one for one in report if one.rule == "uninitialised-read")
    assert read.is_early is is_early
    assert ("zeros would hide" in read.hint) is is_early
    assert ("error: uninitialised-read" in headers(report)) is not is_early


def test_what_another_process_has_found_says_whether_it_is_early() -> None:
    reports = []
    for n in (4, 3):
        with bragg.debug.check() as report:
            reads_the_next[(4,)](np.empty(4, "i4"), np.zeros(4, "i4"), n)
        reports.append(report)
    reports[0].absorb(*reports[1].contents())
    (read,) = (one for one in reports[0] if one.rule == "uninitialised-read")
    assert read.is_early is False


@triton.jit
def copies_rows_and_one_more(x, out, n, B: tl.constexpr):
    i = tl.arange(0, B)
    row = tl.program_id(0) * n
    tl.store(out + row + i, tl.load(x + row + i, mask=i <= n, other=0.0), mask=i < n)


@triton.jit
def copies_rows_without_masks(x, out, n, B: tl.constexpr):
    rows, columns = tl.program_id(0) * B + tl.arange(0, B), tl.arange(0, B)
    values = tl.load(x + rows[:, None] * n + columns[None, :])
    tl.store(out + rows[:, None] * B + columns[None, :], values)


def test_lanes_past_the_end_of_a_row_are_one_finding_with_those_of_the_last_row() -> None:
    report = report_of(copies_rows_and_one_more, (4,), np.zeros((4, 12), "f4"), np.zeros((4, 12), "f4"), 12, B=16)
    assert [finding.rule for finding in report] == ["out-of-bounds", "out-of-bounds"]
    assert headers(report) == ["error: out-of-bounds"]


def test_rows_beyond_the_last_one_are_a_finding_beside_lanes_past_the_end_of_a_row() -> None:
    report = report_of(copies_rows_without_masks, (2,), np.zeros((10, 6), "f4"), np.zeros((16, 8), "f4"), 6, B=8)
    assert headers(report) == ["error: out-of-bounds", "warning: out-of-bounds"]
