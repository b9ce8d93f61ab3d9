"""Shapes of blocks: broadcasting, reshaping, joining."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from bragg.debug.faults import KernelFault
from bragg.debug.flow.place import kernel_line
from bragg.debug.values import Pointer, Tensor, lift_array
from bragg.debug.versions import is_before
from bragg.model.table import Array


def flat_shape(shape: Sequence[Any]) -> tuple[int, ...]:
    """A shape that was given as arguments or as one sequence."""
    if len(shape) == 1 and not isinstance(shape[0], int | np.integer):
        shape = shape[0]
    return tuple(int(extent) for extent in shape)


def rearranged(x: Any, function: Callable[[Array], Array]) -> Any:
    """Apply a function that moves elements, of any type, to a tensor and its taint, or to offsets.

    Args:
        x: A tensor or pointers.
        function: Moves the elements of [programs or 1, *block].
    """
    if isinstance(x, Pointer):
        return x.moved(rearranged(x.offset, function))
    whole = x.whole_taint()
    return Tensor(function(x.data), x.dtype, None, x.bounds, None if whole is None else function(whole))


def broadcast_to(x: Any, shape: tuple[int, ...]) -> Any:
    """A block repeated along axes of one element.

    Raises:
        KernelFault: The shapes do not fit.
    """
    if x.shape == shape:
        return x
    if isinstance(x, Pointer):
        return x.moved(broadcast_to(x.offset, shape))
    old = (1,) * (len(shape) - len(x.shape)) + x.shape
    if len(old) != len(shape) or any(a not in (1, b) for a, b in zip(old, shape, strict=True)):
        raise KernelFault(f"a block of shape {list(x.shape)} cannot be broadcast to {list(shape)}")
    if x.affine is not None:
        return Tensor(None, x.dtype, x.affine.lifted(len(shape)).spread(shape), x.bounds, _spread(x.taint, shape))
    data = np.broadcast_to(lift_array(x.data, len(shape) + 1), (x.programs, *shape))
    return Tensor(data, x.dtype, None, x.bounds, _spread(x.taint, shape))


def _spread(taint: Array | None, shape: tuple[int, ...]) -> Array | None:
    return None if taint is None else lift_array(taint, len(shape) + 1)


def broadcast_pair(a: Any, b: Any) -> tuple[Any, Any]:
    """Two blocks in their common shape."""
    shape = common_shape(a.shape, b.shape)
    return broadcast_to(a, shape), broadcast_to(b, shape)


def common_shape(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    """The shape that blocks get which are used together.

    Raises:
        KernelFault: The shapes do not fit.
    """
    if all(shape == shapes[0] for shape in shapes):
        return shapes[0]
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        listed = " and ".join(str(list(shape)) for shape in dict.fromkeys(shapes))
        raise KernelFault(f"blocks of shapes {listed} do not fit together") from None


def expand_dims(x: Any, axis: int) -> Any:
    """A block with an axis of one element more."""
    rank = len(x.shape) + 1
    axis = axis + rank if axis < 0 else axis
    if not 0 <= axis < rank:
        raise KernelFault(f"invalid axis {axis}: a block of {rank} axes has those from {-rank} to {rank - 1}")
    if isinstance(x, Pointer):
        return x.moved(expand_dims(x.offset, axis))
    shape = (*x.shape[:axis], 1, *x.shape[axis:])
    taint = None if x.taint is None else np.expand_dims(lift_array(x.taint, len(x.shape) + 1), axis + 1)
    if x.affine is not None:
        strides = (*x.affine.strides[:axis], 0, *x.affine.strides[axis:])
        return Tensor(None, x.dtype, type(x.affine)(x.affine.base, strides, shape), x.bounds, taint)
    return Tensor(x.data.reshape(x.programs, *shape), x.dtype, None, x.bounds, taint)


def getitem(x: Any, key: Any) -> Any:
    """`x[:, None]`: new axes; Triton knows no other indexing of blocks."""
    parts = key if isinstance(key, tuple) else (key,)
    for part in parts:
        if not (part is None or (isinstance(part, slice) and part == slice(None))):
            if isinstance(x, Pointer):
                raise _indexed_pointer(part)
            raise KernelFault(
                f"unsupported tensor index {part}: a block is indexed with : and None alone",
                hint="Use masks, tl.gather or tl.split",
            )
    taken = sum(part is not None for part in parts)
    if taken > len(x.shape) and not is_before(3, 9):
        raise KernelFault(f"too many indices for a block of {len(x.shape)} axes", hint="Give one : for each axis")
    for axis, part in enumerate(parts):
        if part is None:
            x = expand_dims(x, axis if x.shape else 0)  # A single value takes them wherever they stand.
    return x


def _indexed_pointer(index: Any) -> KernelFault:
    from bragg.debug.expressions import indexed_at

    name, by = indexed_at(*kernel_line())
    return KernelFault(
        f"unsupported tensor index {index}: a pointer is loaded from or stored to, and not indexed",
        hint=f"tl.load({name} + {by})" if name else "tl.load(pointer + index), with tl.arange for several elements",
    )


def reshape(x: Any, shape: tuple[int, ...]) -> Any:
    """The same elements in another shape.

    Raises:
        KernelFault: The number of elements differs.
    """
    if math.prod(shape) != x.numel:
        raise KernelFault(f"a block of shape {list(x.shape)} cannot be reshaped to {list(shape)}")
    return rearranged(x, lambda data: data.reshape(data.shape[0], *shape))


def permute(x: Any, order: tuple[int, ...]) -> Any:
    """The axes in another order."""
    rank = len(x.shape)
    order = tuple(axis % rank for axis in order)
    if sorted(order) != list(range(rank)):
        raise KernelFault(f"{list(order)} is not an order of the axes of a block of shape {list(x.shape)}")
    return rearranged(x, lambda data: data.transpose(0, *(axis + 1 for axis in order)))


def join(a: Tensor, b: Tensor) -> Tensor:
    """Two blocks side by side along a new last axis."""
    from bragg.debug.numbers.operands import pair

    x, y, _ = pair(a, b)
    x, y = broadcast_pair(x, y)
    programs = max(x.programs, y.programs)
    sides = [np.broadcast_to(side.data, (programs, *side.shape)) for side in (x, y)]
    return Tensor(np.stack(sides, axis=-1), x.dtype, taint=_joined_taint(x, y, lambda t: np.stack(t, axis=-1)))


def _joined_taint(x: Tensor, y: Tensor, function: Callable[[list[Array]], Array]) -> Array | None:
    if x.taint is None and y.taint is None:
        return None
    programs = max(x.programs, y.programs, *(len(t.taint) for t in (x, y) if t.taint is not None))
    whole = [
        np.broadcast_to(np.uint8(0) if t.taint is None else lift_array(t.taint, t.data.ndim), (programs, *t.shape))
        for t in (x, y)
    ]
    return function(whole)


def cat(a: Tensor, b: Tensor, dim: int = 0) -> Tensor:
    """Two blocks one after the other along an axis.

    Raises:
        KernelFault: They differ along another axis.
    """
    rank, programs = len(a.shape), max(a.programs, b.programs)
    if not -rank <= dim < rank:
        raise KernelFault(f"invalid axis {dim}: a block of {rank} axes has those from {-rank} to {rank - 1}")
    axis = dim % rank
    others = [[extent for k, extent in enumerate(side.shape) if k != axis] for side in (a, b)]
    if len(b.shape) != rank or others[0] != others[1]:
        raise KernelFault(f"blocks of shapes {list(a.shape)} and {list(b.shape)} cannot be joined along axis {axis}")
    sides = [np.broadcast_to(side.data, (programs, *side.shape)) for side in (a, b)]
    return Tensor(
        np.concatenate(sides, axis=axis + 1),
        a.dtype,
        taint=_joined_taint(a, b, lambda t: np.concatenate(t, axis=axis + 1)),
    )


def split(x: Any) -> tuple[Any, Any]:
    """The two halves of a last axis of two elements."""
    if not x.shape or x.shape[-1] != 2:
        raise KernelFault(f"tl.split needs a last axis of 2 elements, not a block of shape {list(x.shape)}")
    return rearranged(x, lambda data: data[..., 0]), rearranged(x, lambda data: data[..., 1])
