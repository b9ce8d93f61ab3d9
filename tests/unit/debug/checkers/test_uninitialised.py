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
