"""Accesses outside of their tensor."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from bragg.debug.access import Access
from bragg.debug.checkers.checker import Checker, Recorder
from bragg.debug.findings import access_text
from bragg.debug.program import kernel_line
from bragg.debug.state import Listeners, machine

__all__ = ["BOUNDS"]

Array = npt.NDArray[Any]


def _watch(record: Recorder) -> Listeners:
    def tell(access: Access, outside: Array) -> None:
        lanes_of_block = int(np.prod(access.shape[1:], dtype=np.int64))
        chosen = np.flatnonzero(np.broadcast_to(outside, access.shape))
        offsets = np.broadcast_to(access.offset.data, access.shape).reshape(-1)[chosen]
        programs = machine().active_programs[chosen // lanes_of_block]
        record.at_access(access, programs, chosen % lanes_of_block, offsets, *_words(access, offsets))

    return Listeners(out_of_bounds=[tell])


def _words(access: Access, offsets: Array) -> tuple[str, str]:
    buffer = access.buffer
    is_in_gap = bool(((offsets >= buffer.low) & (offsets < buffer.high)).all())
    if is_in_gap:
        message = f"{access.kind} between the rows of {buffer.name}: in its memory, but not an element of the view"
    elif (offsets < 0).all() and buffer.low == 0:
        message = f"{access.kind} before the first element of {buffer.name}"
    else:
        message = f"{access.kind} outside of {buffer.name}, which has the offsets {buffer.low} to {buffer.high - 1}"
    _, mask = access_text(*kernel_line(), access.kind)
    if mask:
        return message, f"The mask {mask} lets these lanes through: compare each index with the extent of its axis"
    return message, "Give the access a mask that compares each index with the extent of its axis"


BOUNDS = Checker("out-of-bounds", "loads, stores and atomics outside of their tensor", True, _watch)
