"""Accesses that spread over many more memory sectors than their bytes fill."""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from bragg.debug.checkers.checker import Checker, LaunchFindings
from bragg.debug.memory.access import Access
from bragg.debug.numbers.operands import affine_of
from bragg.debug.state import Listeners, machine
from bragg.model import Severity
from bragg.model.table import Array

# What an NVIDIA GPU transfers at least. Source: CUDA C++ Best Practices Guide, "Coalesced Access to Global Memory".
_SECTOR_BYTES = 32
_MOST_WASTE = 2
# Of each program: what fewer lanes touch is little, and one sector is the least.
_FEWEST_LANES = 32


def _watch(record: LaunchFindings) -> Listeners:
    def look(access: Access) -> None:
        offsets, programs = access.offsets, access.programs
        if not len(offsets) or len(offsets) < _FEWEST_LANES * len(np.unique(programs)):
            return
        # Columns that a mask leaves of a tile are few at the edge of a tensor, and lie as well as they can.
        if _is_wasteful(access, offsets, programs) and (access.mask is None or _is_wasteful(access, *_block(access))):
            record.at_access(
                access,
                programs,
                access.lane_numbers,
                offsets,
                f"{access.kind} of {access.buffer.name} touches more than twice the memory sectors that its bytes fill",
                partial(_fix, access),
                Severity.NOTE,
            )

    return Listeners(access=[look])


def _fix(access: Access) -> str:
    """What brings neighbouring lanes to neighbouring elements."""
    buffer, block = access.buffer, affine_of(access.offset)
    strides = {stride for stride, extent in zip(buffer.strides, buffer.shape, strict=True) if extent > 1}
    steps = [] if block is None else [abs(step) for step, n in zip(block.strides, block.shape, strict=True) if n > 1]
    apart = min(steps, default=0)
    if apart > 1 and min(strides, default=0) > 1:
        return f"Elements of {buffer.name} are {min(strides)} apart in memory: make it contiguous"
    if apart > 1 and strides == {1}:
        far = f"Neighbouring lanes are {apart} elements of {buffer.name} apart"
        return f"{far}: keep each field of such structures in a tensor of its own, or load all {apart} in one block"
    return "Let the last axis of the block run along the axis of the tensor whose stride is 1"


def _block(access: Access) -> tuple[Array, Array]:
    """Offsets of all lanes, masked ones too, and their programs: int64 [lanes]."""
    offsets = np.broadcast_to(access.offset.data, access.shape).reshape(-1)
    return offsets, np.repeat(machine().active_programs, math.prod(access.shape[1:]))


def _is_wasteful(access: Access, offsets: Array, programs: Array) -> bool:
    """Lanes touch many more sectors than their bytes fill: those at int64 [lanes] offsets, of these programs."""
    address = offsets * access.dtype.size_bytes + access.buffer.address
    place = address - address.min()
    sectors = len(np.unique(programs * (1 << 40) + place // _SECTOR_BYTES))
    elements = np.unique(programs * (1 << 44) + place) >> 44
    useful = np.unique(elements, return_counts=True)[1] * access.dtype.size_bytes
    needed = int((-(-useful // _SECTOR_BYTES)).sum())
    return sectors > _MOST_WASTE * needed


COALESCING = Checker("uncoalesced", "accesses that waste memory bandwidth", False, _watch)
