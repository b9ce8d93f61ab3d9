"""Accesses that spread over many more memory sectors than their bytes fill."""

from __future__ import annotations

import numpy as np

from bragg.debug.checkers.checker import Checker, LaunchFindings
from bragg.debug.memory.access import Access
from bragg.debug.state import Listeners
from bragg.model import Severity

__all__ = ["COALESCING"]

# What an NVIDIA GPU transfers at least. Source: CUDA C++ Best Practices Guide, "Coalesced Access to Global Memory".
_SECTOR_BYTES = 32
_MOST_WASTE = 2
# Of each program: what fewer lanes touch is little, and one sector is the least.
_FEWEST_LANES = 32


def _watch(record: LaunchFindings) -> Listeners:
    def look(access: Access) -> None:
        offsets, programs = access.offsets, access.programs
        if len(offsets) < _FEWEST_LANES * len(np.unique(programs)):
            return
        address = offsets * access.dtype.size_bytes + access.buffer.address
        place = address - address.min()
        sectors = len(np.unique(programs * (1 << 40) + place // _SECTOR_BYTES))
        elements = np.unique(programs * (1 << 44) + place) >> 44
        useful = np.unique(elements, return_counts=True)[1] * access.dtype.size_bytes
        needed = int((-(-useful // _SECTOR_BYTES)).sum())
        if sectors > _MOST_WASTE * needed:
            record.at_access(
                access,
                programs,
                access.lane_numbers,
                offsets,
                f"{access.kind} of {access.buffer.name} touches more than twice the memory sectors that its bytes fill",
                "Let the last axis of the block run along the axis of the tensor whose stride is 1",
                Severity.NOTE,
            )

    return Listeners(access=[look])


COALESCING = Checker("uncoalesced", "accesses that waste memory bandwidth", False, _watch)
