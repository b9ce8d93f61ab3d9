"""Values that nobody wrote: lanes that a mask left out without a value, and memory of `empty`."""

from __future__ import annotations

from typing import Any

import numpy.typing as npt

from bragg.debug.access import Access
from bragg.debug.checkers.checker import Checker, Recorder
from bragg.debug.emptiness import has_unwritten, unwritten
from bragg.debug.state import Listeners
from bragg.debug.storage import Buffer
from bragg.model import Severity

__all__ = ["UNINITIALISED"]

Array = npt.NDArray[Any]

_USES = {
    "store": "is stored",
    "load": "decides an address or a mask",
    "atomic": "decides an address or a mask",
    "condition": "decides an `if` or a loop",
    "histogram": "is counted",
}


def _watch(record: Recorder) -> Listeners:
    suspects = {id(buffer) for buffer in record.launch.buffers if has_unwritten(buffer)}

    def tell(use: str, taint: Array, bit: int, _buffer: Buffer | None) -> None:
        if use in _USES:
            record.at_line(
                f"a value of a masked-off lane that was loaded without `other` {_USES[use]}",
                "Give the load a value for these lanes: other=0",
                Severity.ERROR,
                (taint & bit) != 0,
            )

    def look(access: Access) -> None:
        if access.kind == "store" or id(access.buffer) not in suspects:
            return
        bad = unwritten(access.buffer, access.offsets)
        if bad.any():
            record.at_access(
                access,
                access.programs[bad],
                access.lane_numbers[bad],
                access.offsets[bad],
                f"{access.kind} of elements of {access.buffer.name} that were never written",
                "Write the tensor first, or make it with zeros instead of empty",
            )

    return Listeners(tainted=[tell], access=[look] if suspects else [])


UNINITIALISED = Checker("uninitialised-read", "values that nobody wrote", True, _watch)
