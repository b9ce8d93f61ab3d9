"""What rests on a broken promise is told where it matters: at stores, atomics and conditions, with the tensor."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import bragg.debug
from bragg.debug.host.launch import execute
from bragg.debug.state import Listeners
from bragg.debug.values import MISLED

triton = pytest.importorskip("triton")
import triton.language as tl  # noqa: E402


def told(kernel: Any, *arguments: Any) -> list[tuple[str, str, int]]:
    """Use, tensor and lanes of each time that a broken promise was told."""
    found: list[tuple[str, str, int]] = []

    def tell(use: str, taint: Any, bit: int, buffer: Any) -> None:
        if bit == MISLED:
            found.append((use, buffer.name if buffer else "", int(np.count_nonzero(taint & bit))))

    def break_lanes_from_three_on(_name: str, x: Any, _values: Any) -> Any:
        return np.arange(x.shape[0])[None] >= 3 if x.shape else np.ones(1, bool)

    listeners = Listeners(hint=[break_lanes_from_three_on], tainted=[tell])
    execute(kernel, (1,), arguments, {}, lambda launch: listeners)
    return found


@triton.jit
def promises(x, y, n):
    i = tl.multiple_of(tl.arange(0, 8), 8)
    values = tl.load(x + i) * 2
    tl.store(y + tl.arange(0, 8), values, mask=tl.arange(0, 8) < 3)
    tl.store(y + tl.arange(0, 8), values, mask=tl.arange(0, 8) < 5)
    tl.store(y + i, 1.0, mask=tl.arange(0, 8) < 4)
    tl.atomic_add(y + i, 1.0)
    if tl.multiple_of(n, 16) > 0:
        tl.store(y, 0.0)


def test_broken_promise_is_told_where_an_active_lane_rests_on_it() -> None:
    x, y = np.arange(8, dtype="f4"), np.zeros(8, "f4")
    assert told(promises, x, y, 3) == [("store", "y", 2), ("store", "y", 1), ("atomic", "y", 5), ("condition", "", 1)]


@triton.jit
def weighted(q, v, n):
    i = tl.arange(0, 16)
    weights = tl.where(i < n, q, 0.0)
    return weights * tl.load(v + i, mask=i < n)  # blamed


@triton.jit
def result_of_a_helper(x, v, out, n):
    i = tl.arange(0, 16)
    q = tl.load(x + i, mask=i < n)
    result = weighted(q, v, n)
    tl.store(out + i, result)


def test_the_load_is_blamed_whose_lanes_came_to_the_use() -> None:
    with bragg.debug.check() as report:
        result_of_a_helper[(1,)](np.ones(12, "f4"), np.ones(12, "f4"), np.zeros(16, "f4"), 12)
    assert [(finding.code.endswith("# blamed"), finding.positions) for finding in report] == [(True, {12, 13, 14, 15})]
