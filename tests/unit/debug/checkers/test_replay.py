"""What counts as a difference between two executions of a launch."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from bragg.debug.checkers.again.replay import Replay
from bragg.debug.memory.storage import Buffer
from bragg.debug.numbers.dtypes import DTYPES


def counts_as_different(first: list[float], second: list[float]) -> bool:
    memory = np.zeros(len(first), "f4")
    buffer = Buffer("x", DTYPES["fp32"], memory, memory.shape, (1,), memory.__array_interface__["data"][0])
    nobody: Any = None
    replay = Replay(nobody)
    written: Any = SimpleNamespace(kind="store", buffer=buffer)
    replay.see(written)
    memory[:] = first
    found = replay.differences(lambda _listeners: memory.__setitem__(slice(None), second))
    np.testing.assert_array_equal(memory, np.array(first, "f4"))
    return bool(found)


@pytest.mark.parametrize(
    ("first", "second", "is_different"),
    [
        ([10.0, -0.0697929859], [10.0, -0.0697915554], False),  # What sums of such numbers leave where they cancel.
        ([0.1, -0.0697929859], [0.1, -0.0697922], False),  # 100 units in the last place.
        ([0.1, -0.06979], [0.1, -0.06989], True),
        ([10.0, 1e-3], [10.0, 2e-3], True),
        ([1.0, float("nan")], [1.0, float("nan")], False),
    ],
    ids=["cancelled", "last places", "far", "doubled", "nan"],
)
def test_floats_may_differ_as_sums_in_two_orders_do(
    first: list[float], second: list[float], is_different: bool
) -> None:
    assert counts_as_different(first, second) == is_different
