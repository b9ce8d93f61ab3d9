"""Lanes that a mask leaves out, and that are left out of reductions and products of matrices, too.

This is how a launch is executed once more to see whether they change its results. A lane is `FILLED` if all that it is
computed from is, numbers that it shares with other lanes aside.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from bragg.debug.numbers.dtypes import DType
from bragg.debug.state import leaves_out
from bragg.debug.values import FILLED, Tensor, bits_of, lift_array
from bragg.model.table import Array

_KEPT = np.uint32(~FILLED & 0xFFFFFFFF)
_INDEXED = ("_argmax_combine", "_argmin_combine")


def without_others(taint: Array | None, operands: Sequence[Any], shape: tuple[int, ...]) -> Array | None:
    """The taint of an operation's result, where lanes of which an operand has a value of its own count.

    Args:
        taint: uint8 or uint32 [programs or 1, *block]: all that the operands have.
        operands: Of the operation.
        shape: Of the result: [programs or 1, *block].
    """
    if taint is None or leaves_out() is None:
        return taint
    lanes: Any = None
    for operand in operands:
        if isinstance(operand, Tensor) and operand.data[0].size == np.prod(shape[1:]) and not _is_zero(operand):
            own = _is_filled(operand, len(shape))
            lanes = own if lanes is None else lanes & own
    return taint if lanes is None else lift_array(taint, len(shape)) & np.where(lanes, np.uint32(0xFFFFFFFF), _KEPT)


def _is_zero(x: Tensor) -> bool:
    """What sums begin with."""
    return x.taint is None and not x.data.any()


def _is_filled(x: Tensor, rank: int) -> Array:
    """bool, broadcasts to an array of so many axes."""
    if x.taint is None:
        return np.zeros((1,) * rank, bool)
    filled: Array = lift_array(x.taint, rank) & np.uint32(FILLED) != 0
    return filled


def selected_taint(mask: Array, test: Tensor, x: Tensor, y: Tensor, taint: Array) -> Array:
    """The taint of `tl.where`: that of what is chosen; what it is chosen by counts where all lanes share the choice.

    Args:
        mask: bool [programs or 1, *block], or what broadcasts to it: `x` is chosen.
        test: The condition.
        x: One side.
        y: The other.
        taint: uint8 or uint32 [programs or 1, *block]: all that condition and chosen side have.
    """
    if leaves_out() is None:
        return taint
    rank, size = taint.ndim, int(np.prod(taint.shape[1:]))
    chosen = np.where(mask, _is_filled(x, rank), _is_filled(y, rank))
    is_shared = np.where(mask, x.numel < size, y.numel < size)
    lanes = chosen | (_is_filled(test, rank) & is_shared)
    result: Array = np.where(lanes, taint | np.uint32(FILLED), taint & _KEPT)
    return result


def greater_or_lesser(result: Tensor, x: Tensor, y: Tensor, *, is_greater: bool) -> Tensor:
    """The result of `tl.maximum` and `tl.minimum`: of a lane that is left out and one that is not, the latter."""
    tell = leaves_out()
    if tell is None or (x.taint is None and y.taint is None):
        return result
    assert result.taint is not None
    rank, data, taint = result.data.ndim, result.data, lift_array(result.taint, result.data.ndim)
    for own, other in ((x, y), (y, x)):
        if other.numel == result.numel and own.taint is not None:
            lanes = ~_is_filled(other, rank) & _is_filled(own, rank)
            alone = lift_array(other.data, rank)
            begins = np.isinf(alone)  # What maxima and minima begin with.
            if (wins := lanes & ~begins & (data != alone)).any():
                tell(np.where(wins, lift_array(own.taint, rank), np.uint32(0)), _extreme(result.dtype, not is_greater))
            data = np.where(lanes & ~begins, alone, data)
            taint = np.where(lanes & begins, taint | lift_array(own.taint, rank), taint)
    return Tensor(data, result.dtype, taint=taint)


def reduced_sides(inputs: list[Tensor], axis: int, name: str) -> list[Tensor]:
    """What is reduced along an axis, without lanes that are left out; they stay where there are no others.

    Args:
        inputs: Blocks of one shape that are reduced together.
        axis: Of the blocks.
        name: Of Triton's own function that combines two elements.
    """
    neutral = _neutral(name, inputs[0].dtype)
    if leaves_out() is None or neutral is None:
        return inputs
    return [_left_out(inputs[0], axis + 1, neutral), *inputs[1:]]


def product_sides(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """The sides of a product of matrices, without lanes that are left out of rows and columns that have others."""
    if leaves_out() is None:
        return x, y
    return _left_out(x, x.data.ndim - 1, 0), _left_out(y, y.data.ndim - 2, 0)


def scanned_taint(taint: Array, own: Array) -> Array:
    """The taint of a scan's result: a lane is left out if it was before, whatever the lanes before it are.

    Args:
        taint: uint8 or uint32 [programs or 1, *block]: of each lane and those before it.
        own: The same, of each lane alone.
    """
    return taint if leaves_out() is None else (taint & _KEPT) | (own & np.uint32(FILLED))


def _neutral(name: str, dtype: DType) -> Any:
    """What changes nothing where it is combined with others; None: it is not known."""
    if name in ("_sum_combine", "_xor_combine", "_or_combine"):
        return 0
    if name == "_prod_combine":
        return 1
    is_greatest = name == "_elementwise_max" or name.startswith(_INDEXED[0])
    if not is_greatest and name != "_elementwise_min" and not name.startswith(_INDEXED[1]):
        return None
    return _extreme(dtype, not is_greatest)


def _extreme(dtype: DType, is_greatest: bool) -> float:
    """The greatest or the least element of a type."""
    if dtype.is_floating():
        return np.inf if is_greatest else -np.inf
    return dtype.limits[1 if is_greatest else 0]


def _left_out(x: Tensor, axis: int, neutral: Any) -> Tensor:
    taint = x.whole_taint()
    if taint is None or not bits_of(taint) & FILLED:
        return x
    filled = taint & np.uint32(FILLED) != 0
    lanes = filled & ~filled.all(axis=axis, keepdims=True)
    differs = lanes & (x.data != neutral)
    if (tell := leaves_out()) is not None and differs.any():
        tell(np.where(differs, taint, np.uint32(0)), neutral)
    data = np.where(lanes, x.data.dtype.type(neutral), x.data)
    return Tensor(data, x.dtype, taint=np.where(lanes, taint & _KEPT, taint))
