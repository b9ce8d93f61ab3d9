"""Values that nobody wrote: lanes that a mask left out without a value, and memory of `empty`."""

from __future__ import annotations

from typing import Any

import numpy.typing as npt

from bragg.debug.access import Access
from bragg.debug.checkers.checker import Checker, Recorder, Source
from bragg.debug.emptiness import has_unwritten, unwritten
from bragg.debug.expressions import access_text, feeding_lines
from bragg.debug.findings import TensorFacts
from bragg.debug.program import kernel_line
from bragg.debug.state import Listeners
from bragg.debug.storage import Buffer
from bragg.debug.values import UNDEFINED
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

Sources = dict[tuple[str, int, str], Source]


def _watch(record: Recorder) -> Listeners:
    masked: Sources = {}
    suspects = {id(buffer) for buffer in record.launch.buffers if has_unwritten(buffer)}

    def tell(use: str, taint: Array, bit: int, _buffer: Buffer | None) -> None:
        if bit != UNDEFINED or use not in _USES:
            return
        for source in _feeding(masked):
            record.at_line(
                f"a value of a masked-off lane that was loaded without `other` {_USES[use]}",
                "Give the load a value for these lanes: other=0",
                Severity.ERROR,
                (taint & bit) != 0,
                source,
            )

    def remember(access: Access) -> None:
        if access.kind != "load" or access.mask is None:
            return
        file, line = kernel_line()
        key = file, line, access.buffer.name
        if key not in masked and not access.mask.all():
            text = access_text(file, line, access.kind, access.buffer.name)
            if not text.has_filler:
                masked[key] = Source(file, line, TensorFacts.of(access.buffer), text)

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

    return Listeners(tainted=[tell], access=[remember, look] if suspects else [remember])


def _feeding(sources: Sources) -> list[Source | None]:
    """The loads whose values may have come to the line that is executed; all of them when the source does not tell."""
    file, line = kernel_line()
    lines = feeding_lines(file, line)
    chosen = [source for source in sources.values() if source.file == file and source.line in lines]
    return [*(chosen or sources.values())] or [None]


UNINITIALISED = Checker("uninitialised-read", "values that nobody wrote", True, _watch)
