"""Functions of single elements, mapped over blocks: every element becomes a program of its own for the call."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from bragg.debug.faults import KernelFault
from bragg.debug.numbers.operands import as_tensor
from bragg.debug.numbers.shapes import broadcast_to
from bragg.debug.state import Machine, machine, use
from bragg.debug.values import Tensor, lift_array


def broadcast_all(operands: Sequence[Any]) -> list[Tensor]:
    """Numbers and blocks in their common shape.

    Raises:
        KernelFault: The shapes do not fit together.
    """
    tensors = [as_tensor(operand) for operand in operands]
    try:
        shape = np.broadcast_shapes(*(tensor.shape for tensor in tensors))
    except ValueError:
        shapes = " and ".join(str(list(tensor.shape)) for tensor in tensors)
        raise KernelFault(f"blocks of shapes {shapes} do not fit together") from None
    return [broadcast_to(tensor, shape) for tensor in tensors]


def map_elementwise(function: Callable[..., Any], *operands: Any, pack: int = 1) -> Any:
    """Call a function for each element, or each `pack` neighbours, of blocks.

    Args:
        function: Takes `pack` values of each operand, those of the first operand first.
        operands: Blocks that are broadcast together.
        pack: Elements that one call handles.

    Returns:
        One block, or a tuple of blocks where the function gives several results.
    """
    blocks = broadcast_all(operands)
    shape, lanes = blocks[0].shape, blocks[0].numel
    if pack < 1 or lanes % pack:
        raise KernelFault(f"blocks of {lanes} elements cannot be handled {pack} at a time")
    outer = machine()
    programs = len(outer.rows)
    inner = Machine(outer.grid, np.repeat(outer.active_programs, lanes // pack), outer.listeners, outer.num_warps)
    before = use(inner)
    try:
        results = function(*(_part(block, programs, pack, k) for block in blocks for k in range(pack)))
    finally:
        use(before)
    is_single = not isinstance(results, tuple)
    values = (results,) if is_single else results
    if len(values) % pack:
        raise KernelFault(f"the function gives {len(values)} results for {pack} elements at a time")
    whole = [_whole(values[k : k + pack], programs, shape) for k in range(0, len(values), pack)]
    return whole[0] if is_single else tuple(whole)


def _part(block: Tensor, programs: int, pack: int, k: int) -> Tensor:
    """Every `pack`-th element from the k-th on, one for each row."""
    shape = (programs, *block.shape)
    data = np.broadcast_to(block.data, shape).reshape(-1)[k::pack]
    taint = None
    if block.taint is not None:
        taint = np.broadcast_to(lift_array(block.taint, len(shape)), shape).reshape(-1)[k::pack]
    return Tensor(np.ascontiguousarray(data), block.dtype, taint=taint)


def _whole(parts: Sequence[Any], programs: int, shape: tuple[int, ...]) -> Tensor:
    """The block of the results of `pack` neighbours."""
    tensors = [as_tensor(part) for part in parts]
    if any(tensor.dtype is not tensors[0].dtype or tensor.shape for tensor in tensors):
        raise KernelFault("the results for neighbours differ in type, or are blocks")
    rows = programs * math.prod(shape) // len(parts)
    full = (programs, *shape)
    data = np.stack([np.broadcast_to(tensor.data, rows) for tensor in tensors], axis=-1).reshape(full)
    taint = None
    if any(tensor.taint is not None for tensor in tensors):
        none = np.zeros(1, np.uint8)
        sides = [np.broadcast_to(none if tensor.taint is None else tensor.taint, rows) for tensor in tensors]
        taint = np.stack(sides, axis=-1).reshape(full)
    return Tensor(data, tensors[0].dtype, taint=taint)
