"""Integers that do not fit: offsets of 32 bits, and narrow ones that wrap before they are made wider."""

from __future__ import annotations

from bragg.debug.checkers.checker import Checker, LaunchFindings, Source
from bragg.debug.expressions import AccessText, access_text, feeding
from bragg.debug.findings import TensorFacts
from bragg.debug.flow.place import kernel_line
from bragg.debug.memory.storage import Buffer
from bragg.debug.numbers.dtypes import DType
from bragg.debug.state import Listeners
from bragg.debug.values import OVERFLOWN
from bragg.model import Severity
from bragg.model.table import Array

__all__ = ["OVERFLOW"]

_USES = {
    "offset": ("an offset overflows {bits} bits", "Convert a factor with .to(tl.int64) before the operation"),
    "widened": ("a number wraps in {dtype} before it is made wider", "Convert an operand to the wider type before it"),
}


def _watch(record: LaunchFindings) -> Listeners:
    numbers: dict[tuple[str, int], tuple[DType, int]] = {}

    def remember(dtype: DType, number: int) -> None:
        numbers.setdefault(kernel_line(), (dtype, number))

    def tell(use: str, taint: Array, bit: int, buffer: Buffer | None) -> None:
        if use not in _USES or bit != OVERFLOWN:
            return
        what, hint = _USES[use]
        for place in feeding(list(numbers), kernel_line()):
            dtype, number = numbers[place]
            record.at_line(
                f"{what.format(dtype=dtype, bits=dtype.bits)}: {number} does not fit into {dtype}",
                hint,
                Severity.ERROR,
                (taint & bit) != 0,
                Source(*place, *_use(buffer)),
            )

    return Listeners(tainted=[tell], overflow=[remember])


def _use(buffer: Buffer | None) -> tuple[TensorFacts | None, AccessText]:
    """The tensor and the address that are computed at the line that is executed."""
    if buffer is None:
        return None, AccessText()
    texts = [access_text(*kernel_line(), kind, buffer.name) for kind in ("load", "store", "atomic")]
    return TensorFacts.of(buffer), next((text for text in texts if text.address), AccessText())


OVERFLOW = Checker("integer-overflow", "offsets that overflow 32 bits, narrow integers that wrap", True, _watch)
