# ruff: noqa: N803 - constants of a kernel are capitals, as in Triton's own code
"""Programs that leave a loop early, or skip a part of it, do what the same lines do in Python for one of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import bragg.debug
from bragg.debug.faults import KernelFault, Unsupported

triton = pytest.importorskip("triton")
import triton.language as tl  # noqa: E402

VALUES = np.array([2, 3, 4, 5, 6, -1, 7, 9, 8, 10], np.int32)
LIMITS = np.array([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 3], np.int32)


def executed(kernel: Any, *arguments: Any) -> list[int]:
    out = np.zeros(len(LIMITS), np.int32)
    bragg.debug.interpret(kernel)[(len(LIMITS),)](VALUES, LIMITS, out, *arguments)
    return out.tolist()


@triton.jit
def sum_of_even_until_negative(x, limits, out):
    pid = tl.program_id(0)
    total = 0
    untouched = pid * 10
    for i in range(tl.load(limits + pid)):
        value = tl.load(x + i)
        if value < 0:
            break
        if value % 2 == 1:
            continue
        total += value
    tl.store(out + pid, total + untouched)


def test_break_and_continue_in_a_for_with_limits_of_its_own() -> None:
    def expected(pid: int, limit: int) -> int:
        total = 0
        for value in VALUES[:limit].tolist():
            if value < 0:
                break
            if value % 2 == 1:
                continue
            total += value
        return total + pid * 10

    assert executed(sum_of_even_until_negative) == [expected(pid, n) for pid, n in enumerate(LIMITS.tolist())]


@triton.jit
def nested_ways_out(x, limits, out):
    pid = tl.program_id(0)
    limit = tl.load(limits + pid)
    i = 0
    seen = 0
    while i < limit:
        value = tl.load(x + i)
        i += 1
        if value == 9:
            tl.store(out + pid, -5)
            return
        if value % 2 == 0 and value != 4:
            continue
        for j in range(pid):
            if j > 2:
                break
            seen += 1
        seen += 100
    tl.store(out + pid, seen)


def test_return_from_a_while_with_an_inner_loop_that_breaks() -> None:
    def expected(pid: int, limit: int) -> int:
        seen = 0
        for value in VALUES[:limit].tolist():
            if value == 9:
                return -5
            if value % 2 == 0 and value != 4:
                continue
            seen += min(pid, 3) + 100
        return seen

    assert executed(nested_ways_out) == [expected(pid, n) for pid, n in enumerate(LIMITS.tolist())]


@triton.jit
def first_above(x, limit):
    for i in range(10):
        if tl.load(x + i) > limit:
            return i
    return -1


@triton.jit
def calls_a_search(x, limits, out):
    pid = tl.program_id(0)
    tl.store(out + pid, first_above(x, tl.load(limits + pid)))


def test_function_returns_a_value_from_within_a_loop() -> None:
    first = [next((i for i, value in enumerate(VALUES) if value > limit), -1) for limit in LIMITS]
    assert executed(calls_a_search) == first


@triton.jit
def endless_until_break(x, limits, out):
    pid = tl.program_id(0)
    limit = tl.load(limits + pid)
    i = 0
    while True:
        if i * i >= limit:
            break
        i += 1
    tl.store(out + pid, i)


def test_endless_loop_ends_by_break() -> None:
    assert executed(endless_until_break) == [int(np.ceil(np.sqrt(limit))) for limit in LIMITS]


@triton.jit
def unrolled_with_constant_break(x, limits, out, LAST: tl.constexpr):
    total = 0
    for k in tl.static_range(8):
        if k == LAST:
            break
        total += k
    tl.store(out + tl.program_id(0), total)


def test_constant_condition_breaks_an_unrolled_loop() -> None:
    assert executed(unrolled_with_constant_break, 5) == [10] * len(LIMITS)


@triton.jit
def assigns_in_a_condition(x, limits, out):
    pid = tl.program_id(0)
    total = 0
    i = 0
    value = 0
    while ((value := tl.load(x + i)) > 0) & (i < pid):
        total += value
        i += 1
    tl.store(out + pid, total + value)


def test_condition_that_assigns() -> None:
    expected = []
    for pid in range(len(LIMITS)):
        stop = min(pid, 5)
        expected.append(int(VALUES[:stop].sum() + VALUES[stop]))
    assert executed(assigns_in_a_condition) == expected


@triton.jit
def searches(x, limits, out):
    pid = tl.program_id(0)
    i = 0
    while tl.load(x + i) > 0:
        i += 1
    while i <= tl.load(limits + pid):
        i += 2
    tl.store(out + pid, i)


def test_search_in_memory_is_no_deadlock() -> None:
    assert executed(searches) == [5 + 2 * max(0, -(-(int(limit) - 4) // 2)) for limit in LIMITS]


@triton.jit
def counts_while_it_waits(x, limits, out):
    tries = 0
    while tl.load(x + 1, volatile=True) == 3:
        tries += 1
    tl.store(out, tries)


def test_wait_that_counts_its_trips_is_a_deadlock_in_the_end() -> None:
    out = np.zeros(1, np.int32)
    with pytest.raises(KernelFault, match="deadlock"):
        bragg.debug.interpret(counts_while_it_waits)[(1,)](VALUES, LIMITS, out)


@triton.jit
def names_of_loops(x, limits, out):
    pid = tl.program_id(0)
    total = 0
    for i in range(2):
        for j in range(2):
            part = tl.load(x + j)
            total += part
        for j in range(2):
            part = tl.load(x + j + tl.arange(0, 2)).to(tl.float32)
            total += tl.sum(part).to(tl.int32) * (i + 1)
    tl.store(out + pid, total)


def test_name_that_is_local_to_a_loop_may_have_another_type_in_the_next_one() -> None:
    first = int(VALUES[:2].sum())
    second = int(VALUES[:2].sum() + VALUES[1:3].sum())
    assert executed(names_of_loops) == [2 * first + 3 * second] * len(LIMITS)


@triton.jit
def name_after_its_loop(x, limits, out):
    for i in range(2):
        last = tl.load(x + i)
    tl.store(out, last)


def test_name_of_a_loop_is_none_after_it() -> None:
    with pytest.raises(KernelFault, match=r"test_flow.py:\d+: a name is used that is not assigned on every way"):
        executed(name_after_its_loop)


def test_jumps_are_reported_as_what_triton_does_not_compile() -> None:
    out = np.zeros(len(LIMITS), np.int32)
    with bragg.debug.check() as report:
        endless_until_break[(len(LIMITS),)](VALUES, LIMITS, out)
    assert any("does not compile `break`" in line for line in report.lines())


@triton.jit
def lambda_among_programs_that_part(x, limits, out):
    pid = tl.program_id(0)
    limit = tl.load(limits + pid)
    scaled = lambda value: value * limit + pid if limit > 2 else value  # noqa: E731
    total = 0
    for i in range(limit):
        if i % 2 == pid % 2:
            total += scaled(tl.load(x + i))
    tl.store(out + pid, total)


def test_a_lambda_computes_with_the_values_of_the_programs_that_call_it() -> None:
    def expected(pid: int, limit: int) -> int:
        values = [value for i, value in enumerate(VALUES[:limit].tolist()) if i % 2 == pid % 2]
        return sum(value * limit + pid if limit > 2 else value for value in values)

    assert executed(lambda_among_programs_that_part) == [expected(pid, n) for pid, n in enumerate(LIMITS.tolist())]


@triton.jit
def lambda_of_a_name_that_changes(x, limits, out):
    pid = tl.program_id(0)
    plus = lambda value: value + pid  # noqa: E731
    pid += 1
    tl.store(out, plus(1))


@triton.jit
def lambda_with_a_default(x, limits, out):
    plus = lambda value, one=1: value + one  # noqa: E731
    tl.store(out, plus(1))


@triton.jit
def tries(x, limits, out):
    try:
        tl.store(out, 1)
    finally:
        tl.store(out, 2)


def test_a_statement_that_triton_does_not_compile_is_a_fault_where_it_is_reached() -> None:
    with pytest.raises(KernelFault, match=r"test_flow.py:\d+: Triton does not compile `try`"):
        executed(tries)


@triton.jit
def chains(x, limits, out):
    pid = tl.program_id(0)
    tl.store(out + pid, (0 <= pid < 3).to(tl.int32))


@triton.jit
def chains_since_3_9(x, limits, out):
    pid = tl.program_id(0)
    tl.store(out + pid, (1 <= pid < 3 != 4).to(tl.int32))


def test_comparisons_are_chained_since_triton_3_9(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bragg.debug.flow.rewriting.transform.is_before", lambda major, minor: False)
    assert executed(chains_since_3_9)[:4] == [0, 1, 1, 0]


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (chains, "a chain of comparisons"),
        (lambda_of_a_name_that_changes, "a `lambda` of pid, which is assigned more than once,"),
        (lambda_with_a_default, "a `lambda` with other than plain parameters"),
    ],
)
def test_what_triton_does_not_compile_is_refused_with_file_and_line(
    kernel: Any, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bragg.debug.flow.rewriting.transform.is_before", lambda major, minor: True)
    with pytest.raises(Unsupported, match=rf"test_flow.py:\d+: {message}") as error:
        executed(kernel)
    assert error.value.hint
