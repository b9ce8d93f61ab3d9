"""Accesses that run past the end of a row into the next one, inside of one contiguous tensor.

Such an access stays in the tensor, so only the way in which a kernel counts tells that it is wrong: rows that are one
row's length apart, and columns beyond it. A kernel that takes the tensor as flat memory never has both: its
blocks lie one after another, and no two of them overlap.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bragg.debug.memory.access import Access
from bragg.debug.memory.storage import Buffer
from bragg.debug.numbers.affine import Affine
from bragg.debug.numbers.operands import affine_of
from bragg.debug.state import machine
from bragg.debug.values import lift_array
from bragg.model.table import Array


@dataclass(frozen=True)
class Spill:
    """Lanes beyond the end of their row.

    Attributes:
        pitch: Elements of a row.
        lanes: bool, [active programs, *block].
    """

    pitch: int
    lanes: Array


def spill_of(access: Access) -> Spill | None:
    """The lanes of an access that are beyond the end of the row in which their program began; None: there are none."""
    block = affine_of(access.offset)
    pitches = _pitches(access.buffer)
    if block is None or not pitches or not block.shape or 1 not in block.strides:
        return None
    axis = block.strides.index(1)
    extent = block.shape[axis]
    pitch = _pitch(block, axis, pitches)
    if pitch is None:
        return None
    column = block.base % pitch
    if (column + extent <= pitch).all() or (column % extent).any():
        return None
    return _beyond(access, block, axis, pitch, column)


def _pitches(buffer: Buffer) -> set[int]:
    """Elements from one row to the next along each axis; empty: the tensor has no rows, or is no contiguous one."""
    if len(buffer.shape) < 2 or buffer.strides[-1] != 1 or buffer.gaps is not None or buffer.first:
        return set()
    pairs = zip(buffer.strides[:-1], buffer.shape[:-1], strict=True)
    return {stride for stride, extent in pairs if extent > 1 and stride > 1}


def _pitch(block: Affine, axis: int, pitches: set[int]) -> int | None:
    """The length of the rows that a block counts in: the step of another axis, or that from program to program."""
    others = {stride for k, stride in enumerate(block.strides) if k != axis and block.shape[k] > 1}
    known = others & pitches
    if not known and not others:
        known = program_steps(block.base) & pitches
    return min(known) if known else None


def program_steps(base: Array) -> set[int]:
    """Elements from the block of one program, whose first is `base` (int64 [n_programs]), to that of the next."""
    programs = machine().active_programs
    if len(base) != len(programs):
        return set()
    x, y, _ = machine().grid
    found = set()
    for distance, is_along in ((1, x > 1), (x, y > 1)):
        position = np.searchsorted(programs, programs + distance)
        has_next = position < len(programs)
        has_next[has_next] = programs[position[has_next]] == programs[has_next] + distance
        steps = np.unique(base[position[has_next]] - base[has_next])
        if is_along and len(steps) == 1:
            found.add(int(steps[0]))
    return found


def _beyond(access: Access, block: Affine, axis: int, pitch: int, column: Array) -> Spill | None:
    steps = np.arange(block.shape[axis]).reshape([-1 if k == axis else 1 for k in range(len(block.shape))])
    beyond = column.reshape(-1, *[1] * len(block.shape)) + steps >= pitch
    beyond = np.broadcast_to(beyond, access.shape)
    active = np.broadcast_to(True if access.mask is None else lift_array(access.mask, beyond.ndim), beyond.shape)
    begins = (active & ~beyond).any(axis=axis + 1, keepdims=True)
    lanes = active & beyond & begins
    return Spill(pitch, lanes) if lanes.any() else None
