"""Offsets that were computed in 32 bits and did not fit."""

from __future__ import annotations

from typing import Any

import numpy.typing as npt

from bragg.debug.checkers.checker import Checker, Recorder, Source
from bragg.debug.expressions import AccessText, access_text
from bragg.debug.findings import TensorFacts
from bragg.debug.flow.program import kernel_line
from bragg.debug.memory.storage import Buffer
from bragg.debug.state import Listeners
from bragg.debug.values import OVERFLOWN
from bragg.model import Severity

__all__ = ["OVERFLOW"]

Array = npt.NDArray[Any]


def _watch(record: Recorder) -> Listeners:
    def tell(use: str, taint: Array, bit: int, buffer: Buffer | None) -> None:
        if use == "offset" and bit == OVERFLOWN:
            record.at_line(
                "an offset was computed in 32 bits and overflowed before it was added to the pointer",
                "Convert a factor with .to(tl.int64) before the multiplication",
                Severity.ERROR,
                (taint & bit) != 0,
                _source(buffer),
            )

    return Listeners(tainted=[tell])


def _source(buffer: Buffer | None) -> Source:
    """The line that is executed, with the address that it computes."""
    here = kernel_line()
    if buffer is None:
        return Source(*here)
    texts = [access_text(*here, kind, buffer.name) for kind in ("load", "store", "atomic")]
    return Source(*here, TensorFacts.of(buffer), next((text for text in texts if text.address), AccessText()))


OVERFLOW = Checker("integer-overflow", "offsets that overflow 32 bits", True, _watch)
