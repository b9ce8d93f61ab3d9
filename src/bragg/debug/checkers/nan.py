"""Operations that make NaN or infinity of finite numbers: all of them, or those whose results a kernel stores.

Where it arises, the processor's own flags say: they are raised by the operation that makes NaN of other numbers, or
exceeds a type, and not by those that pass NaN on. So nothing is looked at until a store has such an element. Where a
single operation lies between loads and a store, the kernel is that operation, and gives what it has for its inputs.
"""

from __future__ import annotations

import ast
import linecache
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from bragg.debug.checkers.checker import Checker, LaunchFindings, Source
from bragg.debug.expressions import differences_at, feeding, feeds
from bragg.debug.flow.place import kernel_line, kernel_names
from bragg.debug.memory.access import Access
from bragg.debug.state import Listeners, machine
from bragg.debug.texts.axis_indices import have_common_shape, indexed_values
from bragg.debug.values import Tensor, lift_array
from bragg.model import Severity
from bragg.model.table import Array

# NumPy's words for the flags.
_FLAGS = ("invalid value", "overflow", "divide by zero")
_ZERO_HINT = "Add a small number to the divisor, or choose with tl.where before the division"
_NAN_HINT = "Look at the operands: subtract a row's maximum before tl.exp; divisors are not 0, roots not of less"
_MASKED_ROW_HINT = (
    "The maximum of a row in which no lane counts is -inf: subtract 0 there, tl.where(m == -float('inf'), 0, m)"
)
_INFINITY_HINT = "Compute in a wider type, .to(tl.float32), or scale before: subtract a row's maximum before tl.exp"


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


def _watch_results(record: LaunchFindings) -> Listeners:
    raised: dict[tuple[str, tuple[str, int]], bool] = {}

    def remember(what: str) -> None:
        place = kernel_line()
        if place[1] and (what, place) not in raised:
            raised[what, place] = what == _FLAGS[0] and _subtracts_infinities(place)

    def look(access: Access) -> None:
        value = access.value
        if value is None:
            return
        now = machine()
        is_one_operation, now.operations = now.operations <= 1, 0
        if is_one_operation or not raised or not value.dtype.is_floating() or np.isfinite(value.data).all():
            return
        is_on: Array | bool = True
        if access.mask is not None:
            is_on = lift_array(access.mask, value.data.ndim)
        invalid, overflown, divided = ([place for kind, place in raised if kind == what] for what in _FLAGS)
        nan, infinite = np.isnan(value.data) & is_on, np.isinf(value.data) & is_on
        name = access.buffer.name
        if invalid and nan.any():
            place = feeding(invalid, kernel_line())[0]
            infinity = next((one for one in overflown if one != place and feeds(one, place)), None)
            if raised[_FLAGS[0], place]:
                tell(place, f"NaN is made here as -inf - -inf, and stored to {name}", _MASKED_ROW_HINT, nan)
            elif infinity is None:
                tell(place, f"NaN is made here of other numbers, and stored to {name}", _NAN_HINT, nan)
            else:
                text = f"a number becomes infinite here, NaN comes of that, and is stored to {name}"
                tell(infinity, text, _INFINITY_HINT, nan)
        if not infinite.any():
            return
        here = kernel_line()  # Infinity is a usual constant: it must come from the line that is blamed.
        for place in (one for one in overflown if feeds(one, here)):
            tell(place, f"a number becomes infinite here, and is stored to {name}", _INFINITY_HINT, infinite)
            return
        for place in (one for one in divided if feeds(one, here) and not _is_logarithm(one)):
            tell(place, f"a number is divided by 0 here, and infinity is stored to {name}", _ZERO_HINT, infinite)
            return

    def tell(place: tuple[str, int], message: str, hint: str, bad: Array) -> None:
        record.at_line(message, hint, Severity.WARNING, bad, Source(*place))

    return Listeners(access=[look], flagged=[remember])


def _subtracts_infinities(place: tuple[str, int]) -> bool:
    """Both sides of a subtraction at a line, which the kernel is at, are -inf in a lane."""
    names = kernel_names()
    for sides in differences_at(*place):
        known = [np.isneginf(floats) for side in sides if (floats := _floats(side, names)) is not None]
        if len(known) < 2:
            continue
        left, right = (lift_array(one, max(each.ndim for each in known)) for one in known)
        if have_common_shape(left.shape, right.shape) and (left & right).any():
            return True
    return False


def _floats(node: ast.expr, names: Mapping[str, Any]) -> Array | None:
    """[programs or 1, *block]; None: it is no name, or name with `[:, None]` and the like, of floats."""
    if isinstance(node, ast.Subscript):
        return indexed_values(_floats(node.value, names), node.slice)
    value = names.get(node.id) if isinstance(node, ast.Name) else None
    return value.data if isinstance(value, Tensor) and value.dtype.is_floating() else None


def _is_logarithm(place: tuple[str, int]) -> bool:
    """That of 0 is wanted as often as not."""
    return "log" in linecache.getline(*place)


NAN_RESULT = Checker(
    "nan-result", "NaN and infinity that a kernel makes of its inputs and stores", True, _watch_results
)
