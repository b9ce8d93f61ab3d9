"""Integer divisions by zero whose result is used: lanes that are left out later may divide by anything."""

from __future__ import annotations

from bragg.debug.checkers.checker import Checker, LaunchFindings, Source
from bragg.debug.expressions import feeding
from bragg.debug.flow.place import kernel_line
from bragg.debug.memory.storage import Buffer
from bragg.debug.state import Listeners
from bragg.debug.values import DIVIDED, Tensor
from bragg.model import Severity
from bragg.model.table import Array


def _watch(record: LaunchFindings) -> Listeners:
    places: list[tuple[str, int]] = []

    def look(divisor: Tensor) -> Array | None:
        low, high = divisor.known_bounds()
        if low > 0 or high < 0:
            return None
        is_zero: Array = divisor.data == 0
        if not is_zero.any():
            return None
        if kernel_line() not in places:
            places.append(kernel_line())
        return is_zero

    def tell(_use: str, taint: Array, bit: int, _buffer: Buffer | None) -> None:
        if bit == DIVIDED:
            for place in feeding(places, kernel_line()):
                record.at_line(
                    "an integer is divided by zero: the result is undefined",
                    "Replace zeros first: tl.where(d == 0, 1, d)",
                    Severity.ERROR,
                    (taint & bit) != 0,
                    Source(*place),
                )

    return Listeners(division=[look], tainted=[tell])


DIVISION = Checker("division-by-zero", "integer / and % by zero", True, _watch)
