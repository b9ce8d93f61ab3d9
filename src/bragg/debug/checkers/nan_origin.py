"""The first operation that makes NaN or infinity of finite numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from bragg.debug.checkers.checker import Checker, LaunchFindings
from bragg.debug.state import Listeners
from bragg.debug.values import Tensor, lift_array
from bragg.model import Severity

__all__ = ["NAN_ORIGIN"]

Array = npt.NDArray[Any]


def _watch(record: LaunchFindings) -> Listeners:
    def look(operands: tuple[Any, ...], result: Tensor) -> None:
        for name, test in (("NaN", np.isnan), ("infinity", np.isinf)):
            bad = test(result.data)
            if not bad.any():
                continue
            new = bad & ~_already_bad(operands, bad.ndim, np.isnan if name == "NaN" else _is_not_finite)
            if new.any():
                is_of_infinities = name == "NaN" and (new & _already_bad(operands, bad.ndim, np.isinf)).any()
                record.at_line(
                    f"{name} is made here of {'infinities' if is_of_infinities else 'finite numbers'}",
                    "Look at the operands in these lanes",
                    Severity.WARNING,
                    new,
                )

    return Listeners(result=[look])


def _is_not_finite(values: Array) -> Array:
    return np.asarray(~np.isfinite(values))


def _already_bad(operands: tuple[Any, ...], rank: int, test: Callable[[Array], Array]) -> Any:
    """Lanes in which an operand passes a test; False when there is no operand."""
    before: Any = False
    for operand in operands:
        if not isinstance(operand, Tensor) or not operand.dtype.is_floating():
            continue
        is_bad = test(operand.data)
        if is_bad.ndim > rank:  # What a reduction was given: any of it may be the reason.
            is_bad = np.logical_or.reduce(is_bad, axis=tuple(range(1, is_bad.ndim)))
        before = before | lift_array(is_bad, rank)
    return before


NAN_ORIGIN = Checker("nan-origin", "operations that make NaN or infinity of finite numbers", False, _watch)
