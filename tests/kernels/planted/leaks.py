"""Planted lists of tensors that grow with every launch."""

# ruff: noqa: N803 - constants of a kernel are capitals, as in Triton's own code

from __future__ import annotations

from typing import Any

import numpy as np
import triton
import triton.language as tl

from tests.kernels.planted.table import bug_of_the_host


@triton.jit
def doubled(x, out, B: tl.constexpr):
    place = tl.arange(0, B)
    tl.store(out + place, tl.load(x + place) * 2)


@bug_of_the_host("leak", "doubled", tensor="out")
def results_kept_forever() -> None:
    x, kept = np.ones(64, "f4"), []
    for _ in range(20):
        out = np.zeros(64, "f4")
        doubled[(1,)](x, out, B=64)  # bug
        kept.append(out)


@triton.jit
def accumulated(x, scratch, out, B: tl.constexpr):
    place = tl.arange(0, B)
    tl.store(scratch + place, tl.load(x + place) * 2)
    tl.store(out + place, tl.load(out + place) + tl.load(scratch + place))


_SCRATCH: dict[int, Any] = {}


@bug_of_the_host("leak", "accumulated", tensor="scratch")
def scratch_memory_in_a_cache_that_never_hits() -> None:
    x, out = np.ones(64, "f4"), np.zeros(64, "f4")
    for step in range(20):
        scratch = _SCRATCH.setdefault(step, np.zeros(64, "f4"))
        accumulated[(1,)](x, scratch, out, B=64)  # bug
    _SCRATCH.clear()
