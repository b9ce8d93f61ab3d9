"""Atomics whose result depends on the order of programs."""

from __future__ import annotations

import numpy as np

from bragg.debug.checkers.checker import Checker, LaunchFindings
from bragg.debug.memory.access import Access
from bragg.debug.state import Listeners
from bragg.model import Severity


def _watch(record: LaunchFindings) -> Listeners:
    owners: dict[int, int] = {}

    def look(access: Access) -> None:
        if access.kind != "atomic" or not access.dtype.is_floating():
            return
        places = access.offsets * access.dtype.size_bytes + access.buffer.address
        shared = np.zeros(len(places), bool)
        for lane, (place, program) in enumerate(zip(places.tolist(), access.programs.tolist(), strict=True)):
            shared[lane] = owners.setdefault(place, program) != program
        if shared.any():
            record.at_access(
                access,
                access.programs[shared],
                access.lane_numbers[shared],
                access.offsets[shared],
                f"several programs change elements of {access.buffer.name} by floating-point atomics:"
                " the last digits differ from run to run",
                "Write partial results and add them up in a second kernel",
                Severity.NOTE,
            )

    return Listeners(access=[look])


ATOMIC_ORDER = Checker("atomic-order", "floating-point atomics whose result depends on the order", False, _watch)
