"""What a Pallas kernel's references are: blocks of arrays that remember who wrote and read each element."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from bragg.debug.faults import Unsupported
from bragg.model.table import Array

NOBODY = -1


@dataclass
class Whole:
    """An array that a call gets or gives.

    Attributes:
        name: Of the kernel's parameter.
        data: The elements.
        is_written: bool, as `data`: elements that have a value.
        writer: Number of the program that wrote each element last; `NOBODY`: none.
        write_place: Where, a number among those of the call.
        reader: Number of the program that read each element last; `NOBODY`: none.
        read_place: Where it did, a number among those of the call.
        is_atomic: bool, as `data`: the last write was an atomic.
    """

    name: str
    data: Array
    is_written: Array
    writer: Array = field(init=False)
    write_place: Array = field(init=False)
    reader: Array = field(init=False)
    read_place: Array = field(init=False)
    is_atomic: Array = field(init=False)

    def __post_init__(self) -> None:
        self.writer, self.reader = (np.full(self.data.shape, NOBODY, np.int64) for _ in range(2))
        self.write_place, self.read_place = (np.zeros(self.data.shape, np.int64) for _ in range(2))
        self.is_atomic = np.zeros(self.data.shape, bool)


@dataclass
class Reference:
    """The block of an array that one program gets.

    Attributes:
        whole: The array.
        start: Of the block, along each axis of the array.
        shape: Of the block; its axes are the last ones that `kept` names.
        kept: Axes of the array that the block has; the others have one element.
    """

    whole: Whole
    start: tuple[int, ...]
    shape: tuple[int, ...]
    kept: tuple[int, ...]

    def places(self, block: tuple[Array, ...]) -> tuple[tuple[Array, ...], Array]:
        """Indices of the array for those of the block, int64 of one shape, and which of them lie in both: bool."""
        inside = np.ones(np.broadcast_shapes(*(one.shape for one in block)) if block else (), bool)
        by_axis = dict(zip(self.kept, block, strict=True))
        for index, extent in zip(block, self.shape, strict=True):
            inside = inside & (index >= 0) & (index < extent)
        whole = []
        for axis, extent in enumerate(self.whole.data.shape):
            index = by_axis.get(axis, np.zeros((), np.int64)) + self.start[axis]
            inside = inside & (index >= 0) & (index < extent)
            whole.append(np.clip(index, 0, max(extent - 1, 0)))
        shape = inside.shape
        return tuple(np.broadcast_to(one, shape) for one in whole), inside


def whole_reference(whole: Whole) -> Reference:
    """A block that is all of an array."""
    rank = whole.data.ndim
    return Reference(whole, (0,) * rank, whole.data.shape, tuple(range(rank)))


def indices_of(transforms: Any, shape: tuple[int, ...]) -> tuple[Array, ...]:
    """Indices of a block: integers that broadcast to the shape of the access; -1 outside of a view.

    Raises:
        Unsupported: The reference is seen through something else than indices, other axes or another shape.
    """
    result: tuple[Array, ...] | None = None
    for one in transforms:
        kind = type(one).__name__
        if kind in _LAYOUTS:
            continue
        if kind == "NDIndexer":
            result = _indices(one.indices, shape) if result is None else _seen_through(one.indices, result)
        elif kind in _VIEWS:
            whole = np.broadcast_arrays(*(_all_of(shape) if result is None else result))
            result = tuple(_VIEWS[kind](axis, one) for axis in whole)
        else:
            raise Unsupported(f"{kind} of a Pallas kernel's reference is not supported", hint="Index the reference")
    return _all_of(shape) if result is None else result


# How elements lie in memory, which changes no index.
_LAYOUTS = {"UnswizzleRef", "UntileRef", "UntilingTransform", "IdentityTransform"}
_VIEWS: dict[str, Callable[[Array, Any], Array]] = {
    **dict.fromkeys(("TransposeTransform", "TransposeRef"), lambda axis, one: axis.transpose(one.permutation)),
    **dict.fromkeys(("ReshapeTransform", "RefReshaper"), lambda axis, one: axis.reshape(one.shape)),
}


def _all_of(shape: tuple[int, ...]) -> tuple[Array, ...]:
    return _indices(tuple(slice(0, extent, 1) for extent in shape), shape)


def _seen_through(indices: tuple[Any, ...], around: tuple[Array, ...]) -> tuple[Array, ...]:
    """Indices of a view, int [block], as those of what it is a view of: int [view]."""
    view = np.broadcast_arrays(*around)
    places = _indices(indices, view[0].shape)
    inside = np.ones((), bool)
    for index, extent in zip(places, view[0].shape, strict=True):
        inside = inside & (index >= 0) & (index < extent)
    kept = tuple(np.clip(index, 0, extent - 1) for index, extent in zip(places, view[0].shape, strict=True))
    return tuple(np.where(inside, axis[kept], -1) for axis in view)


def _indices(indices: tuple[Any, ...], shape: tuple[int, ...]) -> tuple[Array, ...]:
    arrays = [one for one in indices if not hasattr(one, "size") or not hasattr(one, "stride")]
    rank = max((np.ndim(one) for one in arrays if not isinstance(one, slice)), default=0)
    slices = sum(_is_slice(one) for one in indices)
    if rank and any(np.ndim(one) not in (0, rank) for one in arrays if not isinstance(one, slice)):
        raise Unsupported("indices of several ranks are not supported in Pallas kernels", hint="Broadcast them")
    result, axis = [], rank
    for one, extent in zip(indices, shape, strict=True):
        if _is_slice(one):
            start, size, stride = (0, extent, 1) if isinstance(one, slice) else (one.start, one.size, one.stride)
            line = np.asarray(start, np.int64) + np.arange(size) * stride
            result.append(line.reshape([-1 if k == axis else 1 for k in range(rank + slices)]))
            axis += 1
        else:
            own = np.asarray(one, np.int64)
            result.append(own.reshape(own.shape + (1,) * slices) if own.ndim else own)
    return tuple(result)


def _is_slice(one: Any) -> bool:
    return isinstance(one, slice) or type(one).__name__ == "Slice"
