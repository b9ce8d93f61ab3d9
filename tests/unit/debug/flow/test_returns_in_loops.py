"""A `return` in a loop that Triton compiles as one is reported; in an unrolled loop it is none."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("triton")

import triton
import triton.language as tl

import bragg.debug


@triton.jit
def in_for(x, n):
    for i in range(n):
        if i == 3:
            return
        tl.store(x + i, 2.0)


@triton.jit
def in_while(x, n):
    i = 0
    while i < n:
        if i == 3:
            return
        tl.store(x + i, 2.0)
        i += 1


@triton.jit
def _first(x, n):
    for i in range(n):
        for _ in tl.static_range(2):
            if tl.load(x + i) > 0:
                return i
    return -1


@triton.jit
def in_helper(x, n):
    tl.store(x, _first(x, n) * 1.0)


@triton.jit
def unrolled(x, n):
    for i in tl.static_range(6):
        if i == n:
            return
        tl.store(x + i, 2.0)


@triton.jit
def after(x, n):
    for i in range(n):
        tl.store(x + i, 2.0)
    if n > 3:
        return
    tl.store(x, 3.0)


@pytest.mark.parametrize(
    ("kernel", "line"), [(in_for, "return"), (in_while, "return"), (in_helper, "return i"), (unrolled, ""), (after, "")]
)
def test_only_what_triton_refuses_is_reported(kernel: Any, line: str) -> None:
    with bragg.debug.check() as report:
        kernel[(1,)](np.ones(6, "f4"), 6)
    found = [(finding.rule, finding.code, finding.message) for finding in report]
    assert found == ([("portability", line, "Triton does not compile `return` in a loop")] if line else [])
