"""Values of some of the programs: taking them out, and putting them together again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from bragg.debug.faults import KernelFault
from bragg.debug.flow.aggregates import parts_of, rebuilt
from bragg.debug.memory.provenance import joined
from bragg.debug.numbers.affine import Affine
from bragg.debug.numbers.promotion import is_number
from bragg.debug.values import UNSET, Pointer, Tensor, lift_array, scalar
from bragg.model.table import Array

Parts = Sequence[tuple[Array, Any]]


def narrowed(value: Any, positions: Array) -> Any:
    """A value for some of the active programs, whose positions among them are intp [chosen]."""
    if isinstance(value, Tensor | Pointer):
        return value.rows(positions)
    parts = parts_of(value)
    return value if parts is None else rebuilt(value, [narrowed(part, positions) for part in parts])


def merged(parts: Parts, count: int) -> Any:
    """One value from those of groups of programs.

    Args:
        parts: Positions of each group among the programs that meet, ascending, and its value.
        count: Programs that meet.

    Raises:
        KernelFault: The values differ in type or shape.
    """
    values = [value for _, value in parts]
    first = values[0]
    if all(value is first for value in values) and not _is_per_program(first):
        return first
    if any(value is UNSET for value in values):
        return UNSET
    if any(isinstance(value, Tensor) or is_number(value) for value in values):
        if all(is_number(value) and value == first and type(value) is type(first) for value in values):
            return first
        tensors = [(rows, scalar(value) if is_number(value) else value) for rows, value in parts]
        return _merged_tensors(tensors, count)
    if isinstance(first, Pointer):
        if not all(isinstance(value, Pointer) for value in values):
            raise KernelFault("a name holds a pointer in some programs and none in others", hint="Compare it with None")
        together = joined(values)
        offsets = [(rows, value.offset) for (rows, _), value in zip(parts, together, strict=True)]
        return together[0].moved(_merged_tensors(offsets, count))
    inner = [parts_of(value) for value in values]
    if inner[0] is not None and all(part is not None and len(part) == len(inner[0]) for part in inner):
        columns = zip(*(part for part in inner if part is not None), strict=True)
        places = [rows for rows, _ in parts]
        return rebuilt(first, [merged(list(zip(places, column, strict=True)), count) for column in columns])
    if all(value == first for value in values):
        return first
    raise KernelFault(f"a name holds {first!r} in some programs and {values[-1]!r} in others")


def _is_per_program(value: Any) -> bool:
    return isinstance(value, Tensor | Pointer) and value.programs > 1


def _merged_tensors(parts: Sequence[tuple[Array, Tensor]], count: int) -> Tensor:
    first = parts[0][1]
    for _, value in parts:
        if not isinstance(value, Tensor) or value.dtype is not first.dtype or value.shape != first.shape:
            described = " and ".join(sorted({f"{v.dtype}{list(v.shape)}" for _, v in parts if isinstance(v, Tensor)}))
            raise KernelFault(
                f"a name has different types on the ways that meet here ({described}): Triton does not compile that",
                hint="Convert the values to one type",
            )
    taint = _merged_taint(parts, count)
    known = [value.bounds for _, value in parts]
    bounds = None
    if all(bound is not None for bound in known):
        bounds = (min(bound[0] for bound in known if bound), max(bound[1] for bound in known if bound))
    affine = _merged_affine(parts, count)
    if affine is not None:
        return Tensor(None, first.dtype, affine, bounds, taint)
    data = np.empty((count, *first.shape), first.dtype.carrier)
    for rows, value in parts:
        data[rows] = value.data
    return Tensor(data, first.dtype, None, bounds, taint)


def _merged_affine(parts: Sequence[tuple[Array, Tensor]], count: int) -> Affine | None:
    first = parts[0][1].affine
    if first is None:
        return None
    base = np.empty(count, np.int64)
    for rows, value in parts:
        if value.affine is None or value.affine.strides != first.strides:
            return None
        base[rows] = value.affine.base
    return Affine(base, first.strides, first.shape)


def _merged_taint(parts: Sequence[tuple[Array, Tensor]], count: int) -> Array | None:
    if all(value.taint is None for _, value in parts):
        return None
    taint = np.zeros((count, *parts[0][1].shape), np.uint32)
    for rows, value in parts:
        if value.taint is not None:
            taint[rows] = lift_array(value.taint, taint.ndim)
    return taint
