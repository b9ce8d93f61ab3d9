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
_FEWEST_LANES = 32


def _watch(record: LaunchFindings) -> Listeners:
    def look(access: Access) -> None:
        offsets = access.offsets
        if len(offsets) < _FEWEST_LANES:
            return
        address = offsets * access.dtype.size_bytes + access.buffer.address
        pairs = access.programs * (1 << 40) + (address - address.min()) // _SECTOR_BYTES
        sectors = len(np.unique(pairs))
        useful = len(np.unique(access.programs * (1 << 44) + address - address.min())) * access.dtype.size_bytes
        needed = -(-useful // _SECTOR_BYTES)
        if sectors > _MOST_WASTE * needed:
            record.at_access(
                access,
                access.programs,
                access.lane_numbers,
                offsets,
                f"{access.kind} of {access.buffer.name} touches more than twice the memory sectors that its bytes fill",
                "Let the last axis of the block run along the axis of the tensor whose stride is 1",
                Severity.NOTE,
            )

    return Listeners(access=[look])


COALESCING = Checker("uncoalesced", "accesses that waste memory bandwidth", False, _watch)
