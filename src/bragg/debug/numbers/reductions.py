"""Reductions, scans, sorting, histograms and gathers along axes of a block."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from bragg.debug.faults import BlockAsCondition, KernelFault, RuntimeFault
from bragg.debug.flow.lanes import map_elementwise
from bragg.debug.numbers.dtypes import DTYPES
from bragg.debug.numbers.left_out import reduced_sides, scanned_taint
from bragg.debug.numbers.operands import as_tensor, finished
from bragg.debug.numbers.shapes import broadcast_to, rearranged, reshape
from bragg.debug.state import machine
from bragg.debug.values import MEANINGLESS, Tensor, lift_array
from bragg.model.table import Array

Combine = Callable[..., Any]

# Combining functions of triton.language.standard that NumPy has.
_KNOWN: dict[str, np.ufunc] = {
    "_sum_combine": np.add,
    "_elementwise_max": np.fmax,
    "_elementwise_min": np.fmin,
    "_xor_combine": np.bitwise_xor,
    "_or_combine": np.bitwise_or,
    "_prod_combine": np.multiply,
}
_KNOWN_WITH_INDEX = {"_argmax_combine": np.argmax, "_argmin_combine": np.argmin}


def _standard_name(combine: Any) -> str:
    """The name of one of Triton's own combining functions; empty for any other."""
    function: Any = getattr(combine, "fn", None)
    return str(function.__name__) if getattr(function, "__module__", "") == "triton.language.standard" else ""


def reduce(operand: Any, axis: int | None, combine: Combine, keep_dims: bool = False) -> Any:
    """Combine the elements along an axis, or all of them.

    Args:
        operand: A tensor, or several of one shape that are combined together.
        axis: None combines the whole block.
        combine: Takes the values of two elements; associative.
        keep_dims: Leave an axis of one element.
    """
    is_single = isinstance(operand, Tensor)
    inputs = [as_tensor(one) for one in ((operand,) if is_single else operand)]
    rank = len(inputs[0].shape)
    if not rank:
        machine().listeners.tell_difference(
            "Triton does not compile a reduction of a single value", "Reduce a block, or drop the reduction"
        )
        return operand
    machine().tell_meeting()
    kept = (1,) * rank
    if axis is None:
        inputs = [reshape(one, (one.numel,)) for one in inputs]
        axis = 0
    else:
        axis = _axis(axis, rank)
        kept = (*inputs[0].shape[:axis], 1, *inputs[0].shape[axis + 1 :])
    results = _reduce_known(inputs, axis, combine) or _reduce_by_tree(inputs, axis, combine)
    if keep_dims:
        results = [reshape(one, kept) for one in results]
    return results[0] if is_single else tuple(results)


def _axis(axis: int, rank: int) -> int:
    if not -rank <= axis < rank:
        raise KernelFault(f"axis {axis} does not exist in a block of {rank} axes")
    return axis % rank


def _reduce_known(inputs: list[Tensor], axis: int, combine: Combine) -> list[Tensor] | None:
    name = _standard_name(combine)
    inputs = reduced_sides(inputs, axis, name)
    first = inputs[0]
    taint = [_reduced_taint(one, axis) for one in inputs]
    if name in _KNOWN and len(inputs) == 1:
        data = first.data
        if first.dtype.bits == 1 and name == "_sum_combine":
            return None
        reduced = _reduced(_KNOWN[name], data, axis + 1)
        result = finished(reduced, first.dtype, first if first.taint is None else ())
        result.taint = taint[0]
        return [result]
    for prefix, function in _KNOWN_WITH_INDEX.items():
        if name.startswith(prefix) and not (first.dtype.is_floating() and np.isnan(first.data).any()):
            place = np.expand_dims(function(first.data, axis=axis + 1), axis + 1)
            index = np.broadcast_to(inputs[1].data, first.data.shape)
            pairs = ((first.data, first.dtype), (index, inputs[1].dtype))
            taken = [(np.take_along_axis(data, place, axis + 1).squeeze(axis + 1), dtype) for data, dtype in pairs]
            return [Tensor(data, dtype, taint=taint[0]) for data, dtype in taken]
    return None


def _reduced(function: np.ufunc, data: Array, axis: int) -> Array:
    """A reduction; maxima and minima leave NaN out.

    NumPy's fmax takes a signalling NaN for a number and loses what came before it, hence the way around it.
    """
    if function not in (np.fmax, np.fmin) or data.dtype.kind != "f":
        return np.asarray(function.reduce(data, axis=axis, dtype=data.dtype))
    plain = np.maximum if function is np.fmax else np.minimum
    reduced: Array = plain.reduce(data, axis=axis)
    if not np.isnan(reduced).any():
        return reduced
    is_nan = np.isnan(data)
    nothing = data.dtype.type(-np.inf if function is np.fmax else np.inf)
    without = plain.reduce(np.where(is_nan, nothing, data), axis=axis)
    result: Array = np.where(is_nan.all(axis=axis), data.dtype.type(np.nan), without)
    return result


def _reduced_taint(x: Tensor, axis: int) -> Array | None:
    whole = x.whole_taint()
    return None if whole is None else np.asarray(np.bitwise_or.reduce(whole, axis=axis + 1))


def _reduce_by_tree(inputs: list[Tensor], axis: int, combine: Combine) -> list[Tensor]:
    """Combine neighbours until one is left: keeps the order, as only associativity is promised."""
    while (extent := inputs[0].shape[axis]) > 1:
        if extent % 2:
            raise KernelFault(f"a reduction over {extent} elements: Triton needs a power of two")
        halves = (
            [_take(one, axis, slice(0, None, 2)) for one in inputs],
            [_take(one, axis, slice(1, None, 2)) for one in inputs],
        )
        inputs = _combined(combine, *halves)
    return [_take(one, axis, 0) for one in inputs]


def _take(x: Tensor, axis: int, part: Any) -> Tensor:
    key = (slice(None),) * (axis + 1) + (part,)
    taken: Tensor = rearranged(x, lambda data: data[key])
    return taken


def _combined(combine: Combine, left: Sequence[Tensor], right: Sequence[Tensor]) -> list[Tensor]:
    now = machine()
    rows = now.rows
    try:
        result = combine(*left, *right)
    except BlockAsCondition:  # Triton calls it for pairs of elements.
        now.rows = rows
        result = map_elementwise(combine, *left, *right)
    together = [result] if isinstance(result, Tensor) else list(result)
    return [broadcast_to(as_tensor(one), left[0].shape) for one in together]


def scan(operand: Any, axis: int, combine: Combine, reverse: bool = False) -> Any:
    """Combine each element along an axis with all before it, or after it."""
    is_single = isinstance(operand, Tensor)
    inputs = [as_tensor(one) for one in ((operand,) if is_single else operand)]
    axis = _axis(axis, len(inputs[0].shape))
    machine().tell_meeting()
    if reverse:
        inputs = [rearranged(one, lambda data: np.flip(data, axis + 1)) for one in inputs]
    results = _scan_known(inputs, axis, combine) or _scan_by_doubling(inputs, axis, combine)
    if reverse:
        results = [rearranged(one, lambda data: np.flip(data, axis + 1)) for one in results]
    return results[0] if is_single else tuple(results)


def _scan_known(inputs: list[Tensor], axis: int, combine: Combine) -> list[Tensor] | None:
    name, first = _standard_name(combine), inputs[0]
    if name not in _KNOWN or len(inputs) > 1 or first.dtype.is_narrow or first.dtype.bits == 1:
        return None
    result = finished(_KNOWN[name].accumulate(first.data, axis=axis + 1, dtype=first.data.dtype), first.dtype)
    if (whole := first.whole_taint()) is not None:
        result.taint = scanned_taint(np.bitwise_or.accumulate(whole, axis=axis + 1), whole)
    return [result]


def _scan_by_doubling(inputs: list[Tensor], axis: int, combine: Combine) -> list[Tensor]:
    extent, distance = inputs[0].shape[axis], 1
    while distance < extent:
        earlier = [_take(one, axis, slice(None, -distance)) for one in inputs]
        later = [_take(one, axis, slice(distance, None)) for one in inputs]
        combined = _combined(combine, earlier, later)
        inputs = [_replaced(one, axis, distance, new) for one, new in zip(inputs, combined, strict=True)]
        distance *= 2
    return inputs


def _replaced(x: Tensor, axis: int, start: int, new: Tensor) -> Tensor:
    """The block with its elements from `start` on replaced."""
    programs = max(x.programs, new.programs)
    key = (slice(None),) * (axis + 1) + (slice(start, None),)
    data = np.array(np.broadcast_to(x.data, (programs, *x.shape)), dtype=new.dtype.carrier)
    data[key] = new.data
    taint = None
    if x.taint is not None or new.taint is not None:
        old = np.uint32(0) if x.taint is None else lift_array(x.taint, data.ndim)
        taint = np.array(np.broadcast_to(old, data.shape), np.uint32)
        taint[key] = np.uint8(0) if new.taint is None else lift_array(new.taint, data.ndim)
    return Tensor(data, new.dtype, taint=taint)


def sort(x: Tensor, axis: int, descending: bool) -> Tensor | None:
    """Sorted along the last axis; None when the block holds NaN or undefined elements, whose order is the network's."""
    if x.taint is not None or (x.dtype.is_floating() and np.isnan(x.data).any()):
        return None
    machine().tell_meeting()
    data = np.sort(x.data, axis=axis + 1, kind="stable")
    return Tensor(np.flip(data, axis + 1) if descending else data, x.dtype)


def histogram(x: Any, bins: int, mask: Any = None) -> Tensor:
    """How often each of 0 .. bins - 1 occurs in each program's block."""
    values = as_tensor(x)
    if not values.dtype.is_int():
        raise KernelFault(f"tl.histogram takes integers, not {values.dtype}")
    data = values.data.reshape(values.programs, -1).astype(np.int64)
    is_counted, taint = (data >= 0) & (data < bins), values.taint
    if mask is not None:
        lanes = as_tensor(mask).data
        taint = None if taint is None else np.where(lanes, taint, 0)
        programs = max(len(lanes), len(data))
        data = np.broadcast_to(data, (programs, data.shape[1]))
        is_counted = is_counted & lanes.reshape(len(lanes), -1)
    rows = np.broadcast_to(np.arange(len(data))[:, None], data.shape)
    counts = np.bincount((rows * bins + data)[is_counted], minlength=len(data) * bins)
    for bit in MEANINGLESS:
        machine().tell_taint("histogram", taint, bit)
    return Tensor(counts.reshape(len(data), bins).astype(np.int32), DTYPES["int32"])


def gather(source: Tensor, index: Tensor, axis: int) -> Tensor:
    """Elements of a block at positions along one axis.

    Raises:
        KernelFault: A position is outside of the block.
    """
    axis = _axis(axis, len(source.shape))
    if not index.dtype.is_int():
        raise KernelFault(
            f"tl.gather takes integers as positions, not {index.dtype}", hint="Convert with .to(tl.int32)"
        )
    low, high = index.known_bounds()
    if low < 0 or high >= source.shape[axis]:
        raise RuntimeFault(f"tl.gather of element {low if low < 0 else high} along an axis of {source.shape[axis]}")
    programs = max(source.programs, index.programs)
    places = np.broadcast_to(index.data, (programs, *index.shape)).astype(np.int64)
    data = np.take_along_axis(np.broadcast_to(source.data, (programs, *source.shape)), places, axis + 1)
    taint = None
    if source.taint is not None:
        whole = np.broadcast_to(lift_array(source.taint, source.data.ndim), (programs, *source.shape))
        taint = np.take_along_axis(whole, places, axis + 1)
    return Tensor(data, source.dtype, taint=taint)
