"""Pointers from memory that lead to a tensor which was freed, or whose memory belongs to another one by now."""

from __future__ import annotations

import math

import numpy as np

from bragg.debug.checkers.checker import Checker, LaunchFindings
from bragg.debug.memory.access import Access
from bragg.debug.memory.addresses import is_in_torch_tensor, is_nowhere
from bragg.debug.memory.lifetimes import Extent, freed, remember, replaced, suspicious
from bragg.debug.state import Listeners, machine
from bragg.debug.values import lift_array
from bragg.model import Severity
from bragg.model.table import Array

_HINT = "Keep the tensor alive until the kernel has ended, and take the address anew when it was made anew"


def is_stale(access: Access, offset: int) -> bool:
    """An element outside of all tensors is one of a tensor that was freed."""
    return access.buffer.is_freed or (is_nowhere(access.buffer) and freed(_address(access, offset)) is not None)


def _address(access: Access, offset: int) -> int:
    return access.buffer.address + offset * access.dtype.size_bytes


def _watch(record: LaunchFindings) -> Listeners:
    for buffer in record.launch.buffers:
        remember(buffer, record.launch.kernel)

    def look(access: Access, outside: Array) -> bool:
        buffer = access.buffer
        if not (buffer.is_freed or is_nowhere(buffer)):
            return False
        lanes = np.flatnonzero(np.broadcast_to(outside, access.shape))
        offsets = np.broadcast_to(access.offset.data, access.shape).reshape(-1)[lanes]
        programs = machine().active_programs[lanes // math.prod(access.shape[1:])]
        gone = freed(_address(access, int(offsets[0])))
        if buffer.is_freed:
            message = f"{access.kind} of {buffer.name}, whose memory was freed: its storage is smaller than the tensor"
        elif gone is not None:
            message = f"{access.kind} of memory that was freed: {_told(gone)}"
        else:
            return False
        record.at_access(access, programs, lanes % math.prod(access.shape[1:]), offsets, message, _HINT)
        return True

    def point(addresses: Array) -> None:
        for address in suspicious(addresses):
            gone = replaced(address)
            own = any(buffer.spans(address) for buffer in record.launch.buffers)  # Nothing says whence it comes.
            if gone is None or own or not is_in_torch_tensor(address):
                continue  # Memory of nobody is reported when it is accessed; NumPy tells nobody of addresses it gives.
            where = lift_array(addresses == address, addresses.ndim)
            message = f"a pointer to memory that belongs to another tensor by now: {_told(gone)}"
            record.at_line(message, _HINT, Severity.ERROR, where, started_at=gone.place, role="address taken at")

    return Listeners(out_of_bounds=[look], pointed=[point])


def _told(gone: Extent) -> str:
    place = "" if gone.place is None else f", whose address was taken in line {gone.place[1]} of {gone.place[0]}"
    return f"{gone.what}{place}, is gone"


STALE = Checker("stale-memory", "pointers to tensors that were freed, or whose memory another one got", True, _watch)
