"""Promises to the compiler that do not hold: multiple_of, max_contiguous, max_constancy, assume; addresses astray.

A promise about a block counts in the lanes that matter: kernels wrap indices around the end of a tensor, promise that
they are contiguous, and leave the wrapped lanes out when they store.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from bragg.debug.checkers.checker import Checker, LaunchFindings, Source
from bragg.debug.expressions import feeding
from bragg.debug.flow.place import kernel_line
from bragg.debug.memory.access import Access
from bragg.debug.memory.provenance import addresses_of
from bragg.debug.memory.storage import Buffer
from bragg.debug.state import Listeners
from bragg.debug.values import MISLED, Pointer, Tensor
from bragg.model import Severity
from bragg.model.table import Array

_HINT = "Remove the promise, or make it hold"


def _watch(record: LaunchFindings) -> Listeners:
    astray = {id(buffer) for buffer in record.launch.buffers if buffer.address % buffer.dtype.size_bytes}

    broken_at: dict[tuple[str, int], str] = {}

    def check(name: str, value: Any, promised: Any) -> Array | None:
        broken = _broken(name, value, promised)
        if broken is None or not broken.any():
            return None
        what = "tl.assume" if name == "assume" else f"tl.{name}({promised})"
        message = f"{what} does not hold: the compiler may vectorise accesses that are not aligned or contiguous"
        if broken.ndim == 1 or name == "assume":
            record.at_line(message, _HINT, Severity.ERROR, broken)
            return None
        broken_at[kernel_line()] = message
        return broken

    def tell(_use: str, taint: Array, bit: int, _buffer: Buffer | None) -> None:
        if bit == MISLED:
            for place in feeding(list(broken_at), kernel_line()):
                record.at_line(broken_at[place], _HINT, Severity.ERROR, (taint & bit) != 0, Source(*place))

    def look(access: Access) -> None:
        if id(access.buffer) in astray:
            record.at_access(
                access,
                access.programs,
                access.lane_numbers,
                access.offsets,
                f"{access.kind} of {access.buffer.name}, whose address is not a multiple of its elements' size",
                "Pass a tensor whose memory is aligned",
            )

    return Listeners(hint=[check], tainted=[tell], access=[look] if astray else [])


def _broken(name: str, value: Any, promised: Any) -> Array | None:
    """bool, [programs or 1, *block]: elements that break a promise; None: nothing to compare.

    `multiple_of` speaks of the first element of each run of contiguous values, `max_contiguous` of the length of such
    runs, `max_constancy` of the length of runs of equal values. Neighbours are `unit` apart: 1, or an element's bytes.
    """
    if name == "assume":
        return ~value.data if isinstance(value, Tensor) else np.array([not value])
    data = _numbers(value)
    if data is None:
        return None
    unit = value.element.size_bytes if isinstance(value, Pointer) else 1
    factors = promised if isinstance(promised, Sequence) else [promised]
    if data.ndim == 1:
        return data % int(factors[0]) != 0 if name == "multiple_of" else None
    axes = range(1, data.ndim)
    if name == "multiple_of":
        starts = np.logical_and.reduce([_differs(data, axis, unit, at_first=True) for axis in axes])
        astray: Array = starts & np.logical_or.reduce([data % int(factor) != 0 for factor in factors])
        return astray
    wanted = unit if name == "max_contiguous" else 0
    broken = np.zeros(data.shape, bool)
    for axis, factor in zip(axes, factors, strict=False):
        places = np.arange(data.shape[axis]).reshape([-1 if k == axis else 1 for k in range(data.ndim)])
        broken |= _differs(data, axis, wanted, at_first=False) & (places % int(factor) != 0)
    return broken


def _differs(data: Array, axis: int, step: int, *, at_first: bool) -> Array:
    """Elements that are not a step behind the one before them along an axis; `at_first` is for those without one."""
    first = np.full_like(np.take(data, [0], axis=axis), at_first, bool)
    return np.concatenate([first, np.diff(data, axis=axis) != step], axis=axis)


def _numbers(value: Any) -> Array | None:
    if isinstance(value, Pointer):
        return addresses_of(value).data
    if isinstance(value, Tensor) and value.dtype.is_int():
        return value.data
    return None


PROMISES = Checker("broken-promise", "multiple_of and the like that do not hold; misaligned tensors", True, _watch)
