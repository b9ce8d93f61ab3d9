"""Integers that do not fit: offsets of 32 bits, and narrow ones that wrap before they are made wider.

Hash functions wrap on purpose, and take a remainder then. What counts is a remainder in an address that does not depend
on data: signed numbers that have wrapped are negative half of the time, so no kernel hashes its positions so.
"""

from __future__ import annotations

from bragg.debug.checkers.checker import Checker, LaunchFindings, Source
from bragg.debug.expressions import AccessText, access_text, feeding, remainder_feeds_an_address
from bragg.debug.findings import TensorFacts
from bragg.debug.flow.dependence import dependence_of
from bragg.debug.flow.place import kernel_line
from bragg.debug.host.launch import Launch
from bragg.debug.memory.storage import Buffer
from bragg.debug.numbers.dtypes import DType
from bragg.debug.state import Listeners
from bragg.debug.values import OVERFLOWN
from bragg.model import Severity
from bragg.model.table import Array

_USES = {
    "offset": (
        "an offset overflows {bits} bits",
        "Convert a factor with .to(tl.int64) before the operation",
        Severity.ERROR,
    ),
    "remainder": (
        "a number wraps before the remainder that is an address",
        "Convert a factor with .to(tl.int64) before the operation",
        Severity.ERROR,
    ),
    "widened": (
        "a number wraps in {dtype} before it is made wider",
        "Convert an operand to the wider type before it",
        Severity.ERROR,
    ),
    "stored in 8 bits": (
        "a number wraps in {dtype} and is stored",
        "Compute in a wider type and clamp the result, unless the wrap is meant",
        Severity.NOTE,
    ),
}


def _watch(record: LaunchFindings) -> Listeners:
    launch = record.launch
    numbers: dict[tuple[str, int], tuple[DType, int]] = {}

    def remember(dtype: DType, number: int) -> None:
        numbers.setdefault(kernel_line(), (dtype, number))

    def tell(use: str, taint: Array, bit: int, buffer: Buffer | None) -> None:
        if use not in _USES or bit != OVERFLOWN:
            return
        if use == "remainder" and not _is_address(launch):
            return
        what, hint, severity = _USES[use]
        for place in feeding(list(numbers), kernel_line()):
            dtype, number = numbers[place]
            record.at_line(
                f"{what.format(dtype=dtype, bits=dtype.bits)}: {number} does not fit into {dtype}",
                hint,
                severity,
                (taint & bit) != 0,
                Source(*place, *_use(buffer)),
            )

    return Listeners(tainted=[tell], overflow=[remember])


def _is_address(launch: Launch) -> bool:
    """The line that is executed feeds an address, and no address of the launch depends on data."""
    return remainder_feeds_an_address(*kernel_line()) and dependence_of(launch.program, launch.fixed) is None


def _use(buffer: Buffer | None) -> tuple[TensorFacts | None, AccessText]:
    """The tensor and the address that are computed at the line that is executed."""
    if buffer is None:
        return None, AccessText()
    texts = [access_text(*kernel_line(), kind, buffer.name) for kind in ("load", "store", "atomic")]
    return TensorFacts.of(buffer), next((text for text in texts if text.address), AccessText())


OVERFLOW = Checker("integer-overflow", "offsets that overflow 32 bits, narrow integers that wrap", True, _watch)
