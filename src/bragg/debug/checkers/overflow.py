"""Offsets that were computed in 32 bits and did not fit."""

from __future__ import annotations

from typing import Any

import numpy.typing as npt

from bragg.debug.checkers.checker import Checker, Recorder
from bragg.debug.state import Listeners
from bragg.debug.storage import Buffer
from bragg.model import Severity

__all__ = ["OVERFLOW"]

Array = npt.NDArray[Any]


def _watch(record: Recorder) -> Listeners:
    def tell(use: str, taint: Array, bit: int, buffer: Buffer | None) -> None:
        if use == "offset":
            record.at_line(
                "an offset was computed in 32 bits and overflowed before it was added to the pointer",
                "Convert a factor with .to(tl.int64) before the multiplication",
                Severity.ERROR,
                (taint & bit) != 0,
                buffer=buffer,
            )

    return Listeners(tainted=[tell])


OVERFLOW = Checker("integer-overflow", "offsets that overflow 32 bits", True, _watch)
