# ruff: noqa: N803 - constants of a kernel are capitals, as in Triton's own code
"""Memory that nobody has written: copied, computed with, and written in part."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("triton")

import triton
import triton.language as tl

import bragg.debug
from bragg.model import Severity


@triton.jit
def copied(x, out, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(out + i, tl.load(x + i))


@triton.jit
def doubled(x, out, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(out + i, tl.load(x + i) * 2)


@triton.jit
def exchanged(x, out, n, B: tl.constexpr, TIMES: tl.constexpr):
    i = tl.arange(0, B)
    own, next_one = tl.load(x + i, mask=i < n, other=0), tl.load(x + i + 1, mask=i + 1 < n)
    for _ in tl.static_range(TIMES):
        own = own ^ next_one
    tl.store(out + i, own, mask=i < n)


@triton.jit
def number_of_changes(x, out, n, B: tl.constexpr):
    i = tl.arange(0, B)
    own, next_one = tl.load(x + i, mask=i < n), tl.load(x + i + 1, mask=i < n)
    tl.store(out, tl.sum((own != next_one).to(tl.int32), 0))


def severities(kernel: Any, dtype: str, written: int = 0) -> list[Severity]:
    with bragg.debug.check() as report:
        x, out = np.empty(64, dtype), np.zeros(64, dtype)
        x[:written] = 1
        kernel[(4,)](x, out, B=16)
    return [finding.severity for finding in report if finding.rule == "uninitialised-read"]


def test_a_copy_of_a_block_that_nobody_has_written_is_a_note() -> None:
    assert severities(copied, "f4") == [Severity.NOTE]


@pytest.mark.parametrize(
    ("kernel", "dtype", "written"),
    [(doubled, "f4", 0), (copied, "f4", 8), (copied, "i4", 0)],
    ids=["computed", "partly written", "integers"],
)
def test_what_may_be_more_than_a_copy_is_an_error(kernel: Any, dtype: str, written: int) -> None:
    assert severities(kernel, dtype, written) == [Severity.ERROR]


@pytest.mark.parametrize(("times", "rules"), [(2, []), (1, ["uninitialised-read"])])
def test_what_cancels_out_is_not_stored(times: int, rules: list[str]) -> None:
    x, out = np.arange(20, dtype="i4"), np.full(20, -1, "i4")
    with bragg.debug.check() as report:
        exchanged[(1,)](x, out, 20, B=32, TIMES=times)
    assert [finding.rule for finding in report] == rules
    assert (out[:19] == (x[:19] if times == 2 else x[:19] ^ x[1:])).all()


def test_values_of_masked_lanes_are_not_taken_as_equal() -> None:
    with bragg.debug.check() as report:
        number_of_changes[(1,)](np.arange(21, dtype="i4"), np.zeros(1, "i4"), 20, B=32)
    assert {finding.rule for finding in report} == {"uninitialised-read"}
