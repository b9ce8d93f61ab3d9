"""Integer divisions by zero."""

from __future__ import annotations

from bragg.debug.checkers.checker import Checker, Recorder
from bragg.debug.state import Listeners
from bragg.debug.values import Tensor
from bragg.model import Severity

__all__ = ["DIVISION"]


def _watch(record: Recorder) -> Listeners:
    def tell(divisor: Tensor) -> None:
        low, high = divisor.known_bounds()
        if low > 0 or high < 0:
            return
        is_zero = divisor.data == 0
        if is_zero.any():
            record.at_line(
                "an integer is divided by zero: the result is undefined",
                "Replace zeros first: tl.where(d == 0, 1, d)",
                Severity.ERROR,
                is_zero,
            )

    return Listeners(division=[tell])


DIVISION = Checker("division-by-zero", "integer / and % by zero", True, _watch)
