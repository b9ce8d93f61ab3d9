# ruff: noqa: N803 - constants of a kernel are capitals, as in Triton's own code
"""What rests on a broken promise is told where it matters: at stores, atomics and conditions, with the tensor."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import bragg.debug
from bragg.debug.checkers import Checker
from bragg.debug.host.launch import execute
from bragg.debug.session import CheckedSession, checking
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


@triton.jit
def online_sum(x, out, v, B: tl.constexpr):
    row = tl.program_id(0)
    highest, total = float("-inf"), 0.0
    for start in range(0, v, B):
        i = start + tl.arange(0, B)
        values = tl.load(x + row * v + i, mask=(i >= row * 16) & (i < v))
        higher = tl.maximum(highest, tl.max(values))
        total = total * tl.exp(highest - higher) + tl.sum(tl.exp(values - higher))
        highest = higher
    tl.store(out + row, highest + tl.log(total))


def test_block_of_which_one_program_has_no_lane_is_reported_where_a_sum_takes_it() -> None:
    with bragg.debug.check() as report:
        online_sum[(5,)](np.ones((5, 128), "f4"), np.zeros(5, "f4"), 128, B=64)
    assert {finding.rule for finding in report} == {"uninitialised-read"}
    assert any(4 in finding.programs and "values = tl.load" in finding.code for finding in report)


_OPERATIONS = ("sum", "max", "argmax", "cumsum", "trans", "reshape", "flip", "join", "gather", "dot", "sort")


@triton.jit
def through(x, out, OPERATION: tl.constexpr):
    program = tl.program_id(0)
    block = tl.arange(0, 16)[:, None] + tl.arange(0, 32)[None, :] + tl.load(x, mask=program != 2)
    if OPERATION == "sum":
        result = tl.sum(block, 1)
    elif OPERATION == "max":
        result = tl.max(block, 0)
    elif OPERATION == "argmax":
        result = tl.argmax(block, 0)
    elif OPERATION == "cumsum":
        result = tl.cumsum(block, 0)
    elif OPERATION == "trans":
        result = tl.trans(block)
    elif OPERATION == "reshape":
        result = tl.reshape(block, (512,))
    elif OPERATION == "flip":
        result = tl.flip(block, 0)
    elif OPERATION == "join":
        result = tl.join(block, block)
    elif OPERATION == "gather":
        result = tl.gather(block, tl.zeros((16, 32), tl.int32), 0)
    elif OPERATION == "dot":
        result = tl.dot(block.to(tl.float16), tl.zeros((32, 16), tl.float16))
    elif OPERATION == "sort":
        result = tl.sort(block)
    tl.store(out + program, tl.sum(result))


@pytest.mark.parametrize(
    "operation", ["sum", "max", "argmax", "cumsum", "trans", "reshape", "flip", "join", "gather", "dot", "sort"]
)
def test_what_one_program_must_not_use_stays_with_it(operation: str) -> None:
    with bragg.debug.check() as report:
        through[(5,)](np.zeros(1, "i4"), np.zeros(5, "f4"), OPERATION=operation)
    assert [(finding.rule, finding.programs) for finding in report] == [("uninitialised-read", {2})]


def test_launch_that_an_error_ends_is_not_said_to_be_checked() -> None:
    def fail(_access: Any) -> None:
        raise ValueError("shapes")

    session = CheckedSession([Checker("broken", "", True, lambda _: Listeners(access=[fail]))])
    with checking(session), pytest.raises(ValueError, match="shapes"):
        online_sum[(5,)](np.ones((5, 128), "f4"), np.zeros(5, "f4"), 128, B=64)
    assert session.report.summary() == "no findings in 1 launch of 5 programs; 1 launch not executed"
    assert list(session.report.refused) == ["the rest of online_sum, which ValueError ended: shapes"]
