"""`and`, `or` and `not` of kernels, and values that Triton refuses."""

from __future__ import annotations

from typing import Any, NoReturn

from bragg.debug.faults import KernelFault
from bragg.debug.numbers.casts import cast
from bragg.debug.numbers.dtypes import DTYPES
from bragg.debug.state import machine
from bragg.debug.values import OPERATORS, UNSET, Tensor


def minded(word: str) -> NoReturn:
    """A statement that Triton does not compile is reached."""
    raise KernelFault(f"Triton does not compile `{word}`", hint="Leave it out, or let a constant condition rule it out")


def constant_once(value: Any, before: Any, name: str) -> Any:
    """`name: tl.constexpr = value`.

    Raises:
        KernelFault: The name has a value already, as in the second trip of a `tl.static_range`.
    """
    if before is not UNSET:
        raise KernelFault(
            f"{name} is already defined: Triton does not let `{name}: tl.constexpr` change it",
            hint="Name each constant anew; in a tl.static_range, hand the value to a function as a tl.constexpr",
        )
    return value


def refused(value: Any, message: str, hint: str) -> Any:
    """A value that the kernel uses, and Triton's compiler refuses."""
    machine().listeners.tell_difference(message, hint)
    return value


def decides(kind: str, left: Any) -> bool:
    """The left side of `and` or `or` is a constant that decides the outcome."""
    return not isinstance(left, Tensor) and bool(left) is (kind == "or")


def combined(kind: str, left: Any, right: Any) -> Any:
    """`left and right`, or `left or right`, both evaluated."""
    if not isinstance(left, Tensor):
        return right
    if not isinstance(right, Tensor):
        return left if bool(right) is (kind == "and") else right
    if left.shape or right.shape:
        machine().listeners.tell_difference(
            f"`{kind}` on blocks evaluates both sides, and Triton deprecates it",
            f"Use {'&' if kind == 'and' else '|'} with parentheses around the comparisons",
            compiles=True,
        )
    bool_ = DTYPES["int1"]
    for side in (left, right):
        _tell_of_number(kind, side)
    return OPERATORS[kind](cast(left, bool_), cast(right, bool_))


def _tell_of_number(word: str, value: Tensor) -> None:
    if value.dtype.bits > 1:
        machine().listeners.tell_difference(f"Triton does not compile `{word}` of {value.dtype}", "Compare it: x != 0")


def negated(value: Any) -> Any:
    """`not value`."""
    if isinstance(value, Tensor):
        _tell_of_number("not", value)
        return OPERATORS["invert"](cast(value, DTYPES["int1"]))
    if isinstance(value, tuple):
        raise KernelFault("Triton does not compile `not` of a tuple", hint="Compare its length: len(t) == 0")
    return not value
