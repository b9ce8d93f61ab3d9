"""The first operation that makes NaN or infinity of finite numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from bragg.debug.checkers.checker import Checker, Recorder
from bragg.debug.state import Listeners
from bragg.debug.values import Tensor, lift_array
from bragg.model import Severity

__all__ = ["NAN_ORIGIN"]

Array = npt.NDArray[Any]


def _watch(record: Recorder) -> Listeners:
    def look(operands: tuple[Any, ...], result: Tensor) -> None:
        for name, test in (("NaN", np.isnan), ("infinity", np.isinf)):
            bad = test(result.data)
            if not bad.any():
                continue
            new = bad & ~_already_bad(operands, bad.ndim)
            if new.any():
                record.at_line(
                    f"{name} is made here of finite numbers",
                    "Look at the operands in these lanes",
                    Severity.WARNING,
                    new,
                )

    return Listeners(result=[look])


def _already_bad(operands: tuple[Any, ...], rank: int) -> Any:
    """Lanes in which an operand is NaN or infinite; False when no operand is."""
    before: Any = False
    for operand in operands:
        if not isinstance(operand, Tensor) or not operand.dtype.is_floating():
            continue
        is_bad: Array = ~np.isfinite(operand.data)
        if is_bad.ndim > rank:  # What a reduction was given: any of it may be the reason.
            is_bad = np.logical_or.reduce(is_bad, axis=tuple(range(1, is_bad.ndim)))
        before = before | lift_array(is_bad, rank)
    return before


NAN_ORIGIN = Checker("nan-origin", "operations that make NaN or infinity of finite numbers", False, _watch)
