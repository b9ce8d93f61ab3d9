"""Accesses outside of their tensor."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from bragg.debug.checkers.blame import fix_of
from bragg.debug.checkers.checker import Checker, LaunchFindings
from bragg.debug.checkers.rows import spill_of
from bragg.debug.checkers.stale import is_stale
from bragg.debug.memory.access import Access
from bragg.debug.memory.addresses import is_nowhere
from bragg.debug.memory.storage import Buffer
from bragg.debug.state import Listeners, machine
from bragg.model import Severity
from bragg.model.table import Array


def _watch(record: LaunchFindings) -> Listeners:
    def fix(access: Access, lanes: Array) -> Callable[[], str]:
        return partial(fix_of, access, lanes, record.launch.buffers)

    def tell(access: Access, outside: Array) -> bool:
        if "stale-memory" in record.watching and is_stale(access, _first(access, outside)):
            return False  # It is reported as what it is.
        for message, chosen in _kinds(access, outside):
            if chosen.any():
                record.at_access(access, *_lanes(access, chosen), message, fix(access, chosen))
        return True

    def look(access: Access) -> None:
        spill = spill_of(access)
        if spill is not None:
            name = access.buffer.name
            message = f"{access.kind} past the end of a row of {name} into the next: rows have {spill.pitch} elements"
            record.at_access(access, *_lanes(access, spill.lanes), message, fix(access, spill.lanes), Severity.WARNING)

    has_rows = any(len(buffer.shape) > 1 for buffer in record.launch.buffers)
    return Listeners(out_of_bounds=[tell], access=[look] if has_rows else [])


def _first(access: Access, outside: Array) -> int:
    lane = np.flatnonzero(np.broadcast_to(outside, access.shape))[0]
    return int(np.broadcast_to(access.offset.data, access.shape).reshape(-1)[lane])


def _lanes(access: Access, chosen: Array) -> tuple[Array, Array, Array]:
    """Program, position in the block and offset of each chosen lane; `chosen` broadcasts to the access."""
    lanes_of_block = math.prod(access.shape[1:])
    found = np.flatnonzero(np.broadcast_to(chosen, access.shape))
    offsets = np.broadcast_to(access.offset.data, access.shape).reshape(-1)[found]
    return machine().active_programs[found // lanes_of_block], found % lanes_of_block, offsets


def _kinds(access: Access, outside: Array) -> Iterator[tuple[str, Array]]:
    """What is to be said of lanes outside of a tensor, and the lanes it is said of."""
    buffer, kind, offsets = access.buffer, access.kind, access.offset.data
    before = outside & (offsets < buffer.low)
    beyond = outside & (offsets >= buffer.high)
    if not len(buffer.flat):
        is_view = isinstance(buffer.owner, Buffer)
        lacks = f"is smaller than one {buffer.dtype}" if is_view else "is empty"
        place = "outside of all tensors" if is_nowhere(buffer) else f"of {buffer.name}, which {lacks}"
        yield f"{kind} {place}", outside
    elif buffer.low == 0:
        yield f"{kind} before the first element of {buffer.name}", before
        yield f"{kind} outside of {buffer.name}, which has the offsets 0 to {buffer.high - 1}", beyond
    else:
        limits = f"{buffer.low} to {buffer.high - 1}"
        yield f"{kind} outside of {buffer.name}, which has the offsets {limits}", before | beyond
    text = f"{kind} between the rows of {buffer.name}: in its memory, but not an element of the view"
    yield text, outside & ~before & ~beyond


BOUNDS = Checker("out-of-bounds", "loads, stores and atomics outside of their tensor", True, _watch)
