"""Code that runs here and does something else, or does not compile, on a GPU."""

from __future__ import annotations

import numpy as np

from bragg.debug.checkers.checker import Checker, LaunchFindings, Source
from bragg.debug.expressions import feeding
from bragg.debug.flow.place import kernel_line
from bragg.debug.memory.storage import Buffer
from bragg.debug.state import Listeners
from bragg.debug.values import SHIFTED, Tensor
from bragg.model import Severity
from bragg.model.table import Array


def _watch(record: LaunchFindings) -> Listeners:
    shifts: dict[tuple[str, int], int] = {}

    def tell(message: str, hint: str, compiles: bool) -> None:
        record.at_line(message, hint, Severity.NOTE if compiles else Severity.WARNING)

    def look(amount: Tensor, bits: int) -> Array | None:
        is_far: Array = np.asarray((amount.data < 0) | (amount.data >= bits))
        if not is_far.any():
            return None
        shifts[kernel_line()] = bits
        return is_far

    def tell_shift(_use: str, taint: Array, bit: int, _buffer: Buffer | None) -> None:
        for place in feeding(list(shifts), kernel_line()) if bit == SHIFTED else ():
            record.at_line(
                f"an integer of {shifts[place]} bits is shifted by as many or more: the result is undefined on a GPU",
                f"Limit the amount: tl.where(s < {shifts[place]}, x << s, 0)",
                Severity.WARNING,
                (taint & bit) != 0,
                Source(*place),
            )

    return Listeners(differs=[tell], shift=[look], tainted=[tell_shift])


PORTABILITY = Checker("portability", "code that a GPU runs differently or does not compile", True, _watch)
