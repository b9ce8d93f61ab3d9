"""Comparisons, of numbers and of pointers; ranges alone decide some."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from bragg.debug.memory.provenance import addresses_of
from bragg.debug.numbers.dtypes import DTYPES
from bragg.debug.numbers.left_out import without_others
from bragg.debug.numbers.operands import pair
from bragg.debug.state import machine
from bragg.debug.values import OPERATORS, Pointer, Tensor, lift_array, merged_taint
from bragg.model.table import Array

_BOOL = DTYPES["int1"]

COMPARISONS: dict[str, Callable[..., Array]] = {
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "eq": np.equal,
    "ne": np.not_equal,
}


def comparison(name: str) -> Callable[[Any, Any], Any]:
    """The operator of a name, such as `lt`."""
    function = COMPARISONS[name]

    def compare(a: Any, b: Any) -> Any:
        if a is None or b is None:
            return name == "ne"
        if isinstance(a, Pointer) or isinstance(b, Pointer):
            return _compare_pointers(a, b, name)
        x, y, dtype = pair(a, b)
        if dtype.is_int() and x.taint is None and y.taint is None:
            decided = _decided(name, x.known_bounds(), y.known_bounds())
            if decided is not None:
                return constant_mask(np.broadcast_shapes(x.shape, y.shape), decided)
        rank = max(x.data.ndim, y.data.ndim)
        data = function(lift_array(x.data, rank), lift_array(y.data, rank))
        result = Tensor(data, _BOOL, taint=without_others(merged_taint(x, y), (x, y), data.shape))
        if result.taint is not None:
            for listener in machine().listeners.compared:
                listener(name, (a, x), (b, y), data)
        return result

    return compare


def _decided(name: str, a: tuple[int, int], b: tuple[int, int]) -> bool | None:
    """The outcome of a comparison that the ranges alone decide."""
    if name in ("gt", "le"):
        outcome = _decided("lt", b, a)
        return outcome if name == "gt" or outcome is None else not outcome
    if name == "ge":
        outcome = _decided("lt", a, b)
        return None if outcome is None else not outcome
    if name == "lt":
        return True if a[1] < b[0] else False if a[0] >= b[1] else None
    apart = a[1] < b[0] or b[1] < a[0]
    same = a[0] == a[1] == b[0] == b[1]
    if not apart and not same:
        return None
    return same if name == "eq" else apart


def constant_mask(shape: tuple[int, ...], value: bool) -> Tensor:
    """A mask of one value."""
    return Tensor(np.broadcast_to(np.bool_(value), (1, *shape)), _BOOL, bounds=(int(value), int(value)))


def _compare_pointers(a: Any, b: Any, name: str) -> Any:
    """In the order of addresses; a number is one."""
    if isinstance(a, Pointer) and isinstance(b, Pointer) and a.buffer is b.buffer:
        return OPERATORS[name](a.offset, b.offset)
    return OPERATORS[name](*(addresses_of(side) if isinstance(side, Pointer) else side for side in (a, b)))
