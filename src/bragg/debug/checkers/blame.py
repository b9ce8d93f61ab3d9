"""What makes an access leave its tensor: the step of its address, or its mask.

A mask hides a wrong step, and the results stay wrong. So steps are compared with the strides of the tensor first.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from bragg.debug.checkers.rows import program_steps, spill_of
from bragg.debug.expressions import Step, access_text, mask_shape, number_of, pointer_step
from bragg.debug.flow.place import kernel_line, kernel_names
from bragg.debug.lazy import lazy
from bragg.debug.memory.access import Access
from bragg.debug.memory.storage import Buffer
from bragg.debug.state import machine
from bragg.debug.texts.address_terms import address_terms
from bragg.debug.texts.axis_indices import axis_indices
from bragg.debug.values import lift_array
from bragg.model.table import Array

# Shares of lanes that are outside. Where a mask is missing or lets one lane too many through, it is less.
_MANY, _MANY_OF_MASK = 1 / 2, 1 / 3


def fix_of(access: Access, outside: Array, tensors: Sequence[Buffer] = ()) -> str:
    """What to change about an access.

    Args:
        access: The access.
        outside: bool, broadcasts to [active programs, *block]: the lanes that must not be accessed.
        tensors: Of the launch: a stride may be that of another one.
    """
    seen = _Seen(access, np.broadcast_to(outside, access.shape), tensors)
    return _wrong_step(seen) or _of_mask(seen)


@dataclass
class _Seen:
    """An access with lanes outside of its tensor.

    Attributes:
        access: The access.
        outside: bool, [active programs, *block].
        tensors: Of the launch.
    """

    access: Access
    outside: Array
    tensors: Sequence[Buffer]

    @property
    def buffer(self) -> Buffer:
        """The tensor."""
        return self.access.buffer

    @lazy
    def offsets(self) -> Array:
        """int64 [active programs, *block]."""
        return np.broadcast_to(self.access.offset.data, self.access.shape)

    @lazy
    def active(self) -> Array:
        """bool, [active programs, *block]: lanes that the mask lets through."""
        mask = self.access.mask
        return np.broadcast_to(True if mask is None else lift_array(mask, self.offsets.ndim), self.offsets.shape)

    @lazy
    def row(self) -> int:
        """Position of the first program that has a lane outside."""
        return int(np.flatnonzero(self.outside.reshape(len(self.outside), -1).any(axis=1))[0])

    @lazy
    def parts(self) -> list[Array]:
        """int64 [extent] for each axis of the block: what it adds to the offset; empty: axes do not add up."""
        block = self.offsets[self.row]
        base = block[(0,) * block.ndim]
        first = (0,) * (block.ndim - 1)
        lines = [np.moveaxis(block, k, -1)[first] - base for k in range(block.ndim)]
        total = base + sum(np.ix_(*lines)) if lines else base
        return lines if np.array_equal(total, block) else []

    @lazy
    def steps(self) -> list[int]:
        """Of each axis of the block: the largest number of elements that all its steps are a multiple of; 0: none."""
        return [int(np.gcd.reduce(part)) for part in self.parts]

    @lazy
    def axes(self) -> list[int | None]:
        """The axis of the tensor that each axis of the block goes along; None: along none."""
        return [_axis_of(self.buffer, step) for step in self.steps]

    @lazy
    def bases(self) -> Array:
        """int64 [active programs]: offset of each one's first lane."""
        return self.offsets.reshape(len(self.offsets), -1)[:, 0]

    @lazy
    def indices(self) -> dict[int, Array]:
        """int64 for each axis, broadcasts to [active programs, *block]: its index; empty: the source does not tell."""
        return axis_indices(self.access) if len(self.buffer.shape) > 1 else {}

    @lazy
    def beyond(self) -> dict[int, int]:
        """The axes that lanes outside leave, each with the end that they leave it at: 0, or its extent."""
        return self._beyond_by_text() or self.carried

    def _beyond_by_text(self) -> dict[int, int]:
        found = {}
        for axis, values in sorted(self.indices.items()):
            index = np.broadcast_to(values, self.outside.shape)[self.outside]
            if (index < 0).any():
                found[axis] = 0
            elif (index >= self.buffer.shape[axis]).any():
                found[axis] = self.buffer.shape[axis]
        return found

    @lazy
    def carried(self) -> dict[int, int]:
        """The same, of the indices that their offsets would have: of one beyond its extent, the next axis is."""
        own = self.offsets - self.bases.reshape(-1, *[1] * (self.offsets.ndim - 1))
        is_alike = (own == own[self.row]).reshape(len(own), -1).all(axis=1)
        rows = np.flatnonzero(is_alike & self.outside.reshape(len(own), -1).any(axis=1))
        first = np.array([self.buffer.index(base) for base in self.bases[rows].tolist()])
        outside, found = self.outside[rows], {}
        for axis, (extent, stride) in enumerate(zip(self.buffer.shape, self.buffer.strides, strict=True)):
            lines = [part // stride * (along == axis) for part, along in zip(self.parts, self.axes, strict=True)]
            index = first[:, axis].reshape(-1, *[1] * len(lines)) + sum(np.ix_(*lines))
            is_before = (outside & (index < 0)).any()
            if is_before or (outside & (index >= extent)).any():
                found[axis] = 0 if is_before else extent
        return found

    @lazy
    def is_flat(self) -> bool:
        """The kernel counts all elements of a tensor in one row."""
        if self._beyond_by_text():
            return False
        shape, strides = self.buffer.shape, self.buffer.strides
        known = {axis for axis in self.axes if axis is not None}
        if len(shape) < 2 or len(known) > 1:
            return False
        pitches = {stride for stride, extent in zip(strides, shape, strict=True) if stride > 1 and extent > 1}
        apart = program_steps(self.bases)
        if pitches and apart:
            tiles = {len(part) for part in self.parts} - pitches
            return all(step in tiles or any(step % pitch for pitch in pitches) for step in apart)
        reach = max((int(part.max()) for part in self.parts), default=0)
        return known == {len(shape) - 1} and reach > shape[-1] + 1


def _axis_of(buffer: Buffer, step: int) -> int | None:
    fitting = [
        (stride, extent, axis)
        for axis, (stride, extent) in enumerate(zip(buffer.strides, buffer.shape, strict=True))
        if step and stride > 0 and step % stride == 0
    ]
    return max(fitting)[2] if fitting else None


def _wrong_step(seen: _Seen) -> str:
    """Which step of the address is not one of the tensor; empty: the steps may be right."""
    if not len(seen.buffer.flat):
        return ""
    return _of_block(seen) or _of_lanes(seen) or _of_programs(seen) or _of_turns(seen) or _of_address(seen)


def _of_block(seen: _Seen) -> str:
    """Neighbours along an axis of the block are no multiple of a stride apart, or a stride of another tensor."""
    own = {stride for stride in seen.buffer.strides if stride > 1}
    if len(seen.buffer.shape) < 2 or not own:
        return ""
    steps = {int(abs(part[1])) for part in seen.parts if len(part) > 1} - own
    for step in (step for step in steps if step > 1):
        text = f"The address counts {step} elements from one row to the next, and {_strides(seen.buffer)}"
        other = next((f": {step} is a stride of {one.name}" for one in seen.tensors if step in one.strides), "")
        if other or all(step % stride for stride in own):
            return text + other
    return ""


def _of_lanes(seen: _Seen) -> str:
    """Every lane would be inside if neighbours were as far apart as elements, and many are outside."""
    buffer = seen.buffer
    stride = min((stride for stride in buffer.strides if stride > 0), default=0)
    if len(seen.steps) != 1 or not stride or seen.steps[0] <= stride or len(buffer.shape) != 1:
        return ""
    nearer = seen.offsets // seen.steps[0] * stride
    least = _MANY if seen.access.mask is None else _MANY_OF_MASK
    if seen.outside.sum() < least * seen.active.sum() or buffer.outside(nearer[seen.active]).any():
        return ""
    return (
        f"Neighbouring lanes are {seen.steps[0]} elements apart, and those of {buffer.name} {stride}: a pointer of"
        " Triton counts elements, not bytes"
    )


def _of_programs(seen: _Seen) -> str:
    """Programs are further apart than a row is long, and not by the distance between rows."""
    buffer = seen.buffer
    width = _row_width(buffer)
    pitches = {stride for stride, extent in zip(buffer.strides, buffer.shape, strict=True) if extent > 1 < stride}
    if not width or not pitches:
        return ""
    rows, tiles = _rows(buffer, min(pitches)), {len(part) for part in seen.parts}
    for step in sorted(program_steps(seen.bases)):
        # Flat memory is contiguous, and its tiles lie one after the other.
        is_of_rows = step >= width if buffer.gaps is not None else width < step < 2 * width and step not in tiles
        if is_of_rows and all(step % pitch for pitch in pitches):
            return f"The address moves by {step} elements from one program to the next: {rows}"
    return f"The address takes {buffer.name} as contiguous: {rows}" if buffer.gaps is not None and seen.is_flat else ""


def _row_width(buffer: Buffer) -> int:
    """Elements of memory from the first to the last one of a row; 0: there are no rows of elements side by side."""
    return buffer.shape[-1] if len(buffer.shape) > 1 and buffer.strides[-1] == 1 else 0


def _of_turns(seen: _Seen) -> str:
    """A loop moves the pointer further than the block reaches, or past the end altogether."""
    place = kernel_line()
    step = pointer_step(*place, seen.access.kind, seen.buffer.name)
    distance = None if step is None else number_of(step.amount, kernel_names())
    if step is None or not distance or distance < 0:
        return ""
    axis = _axis_of(seen.buffer, distance)
    moved = _moved(seen.buffer, step, distance, axis)
    if axis is not None and _is_seen_along_grid():
        reach = sum(int(part.max()) for part, along in zip(seen.parts, seen.axes, strict=True) if along == axis)
        stride = seen.buffer.strides[axis]
        covered, turn = reach // stride + 1, distance // stride
        phases = np.unique(seen.bases // stride % turn)
        if seen.parts and turn > covered and len(phases) * covered < turn:
            return f"{moved}, and the block covers {covered}: correct the step; a mask would hide the error"
    if seen.outside[seen.active].all():
        return f"{moved}, and all lanes of this turn are outside: correct the step, or the end of the loop"
    return ""


def _moved(buffer: Buffer, step: Step, distance: int, axis: int | None) -> str:
    if axis is None or len(buffer.shape) == 1:
        along = f"{distance} elements"
    else:
        along = f"{distance // buffer.strides[axis]} along axis {axis} of {buffer.name}"
    return f"Each turn {step.text} (line {step.line}) moves the pointer by {along}"


def _is_seen_along_grid() -> bool:
    """Among the active programs are several along each axis of the grid, so that it shows what they share."""
    now = machine()
    return all(extent == 1 or len(np.unique(now.program_ids(axis))) > 1 for axis, extent in enumerate(now.grid))


def _of_address(seen: _Seen) -> str:
    """No lane of any program is inside, the first program among them."""
    if machine().active_programs[0] != 0 or not seen.outside[seen.active].all() or seen.outside.sum() < 2:
        return ""
    address = access_text(*kernel_line(), seen.access.kind, seen.buffer.name).address
    return f"All lanes are outside: look at the address{f' {address}' if address else ''} before the mask"


def _strides(buffer: Buffer) -> str:
    return f"{buffer.name} has the strides [{', '.join(map(str, buffer.strides))}]"


def _rows(buffer: Buffer, pitch: int) -> str:
    return f"the rows of {buffer.name} are {pitch} apart, so multiply the row by that stride"


def _of_mask(seen: _Seen) -> str:
    """What the mask must compare."""
    mask = access_text(*kernel_line(), seen.access.kind, seen.buffer.name).mask
    axes, limit = _exceeded(seen)
    if axes and (fault := _wrong_index(seen, seen.carried)):
        return fault
    limit += _in_other_rows(seen, axes)
    if not mask:
        return f"Give the access a mask that compares {limit}"
    if axes and not any(_is_masked_along(seen, axis) for axis in axes):
        return f"The mask {mask} does not look at {' and '.join(f'axis {axis}' for axis in axes)}: compare {limit}"
    return f"The mask {mask} lets these lanes through: compare {limit}"


def _wrong_index(seen: _Seen, carried: Collection[int]) -> str:
    """The index of an axis that the lanes do not leave, of the first program outside, is beyond its extent."""
    buffer, names = seen.buffer, kernel_names()
    for term in address_terms(*kernel_line(), seen.access.kind, buffer.name):
        factors = (term.left, term.right) if isinstance(term, ast.BinOp) and isinstance(term.op, ast.Mult) else ()
        for index, stride in (factors, factors[::-1]) if factors else ():
            distance, position = number_of(stride, names, seen.row), number_of(index, names, seen.row)
            if distance is None or position is None or distance < 2 or buffer.strides.count(distance) != 1:
                continue
            axis = buffer.strides.index(distance)
            if axis not in carried and not 0 <= position < buffer.shape[axis]:
                text = f"{ast.unparse(index)}, the index of axis {axis} of {buffer.name}, is {position}"
                return f"{text}, and the extent of that axis {buffer.shape[axis]}: correct it"
    return ""


def _exceeded(seen: _Seen) -> tuple[list[int], str]:
    """The axes that lanes outside leave, and what the mask must compare; empty: they are not known."""
    buffer = seen.buffer
    adds_up = seen.parts or seen.offsets.ndim == 1 or seen.indices
    if not (adds_up and min(buffer.strides, default=0) > 0 and len(buffer.flat)):
        return [], "each index with the extent of its axis"
    if seen.is_flat or len(buffer.shape) == 1:
        is_before = seen.offsets[seen.outside].min() < buffer.low
        limit = "0, too" if is_before else f"{math.prod(buffer.shape)}, the elements of {buffer.name}"
        return [] if seen.is_flat else [0], f"the index with {limit}"
    limits = [
        f"{f'that of axis {axis}' if k else f'the index of axis {axis} of {buffer.name}'} with "
        + (f"its extent, {end}" if end else "0, too")
        for k, (axis, end) in enumerate(seen.beyond.items())
    ]
    return list(seen.beyond), ", and ".join(limits) or "each index with the extent of its axis"


def _in_other_rows(seen: _Seen, axes: Sequence[int]) -> str:
    """Lanes that are beyond the end of an axis as well, and inside of the tensor; empty: none."""
    if spill_of(seen.access) is not None:  # These lanes are a finding of their own.
        return ""
    beyond = np.zeros(seen.outside.shape, bool)
    for axis in set(axes) & set(seen.indices):
        values = seen.indices[axis]
        beyond |= (values < 0) | (values >= seen.buffer.shape[axis])
    count = int(np.count_nonzero(beyond & seen.active & ~seen.buffer.outside(seen.offsets)))
    return f" ({count} more lanes are beyond the end of a row, inside of the tensor)" if count else ""


def _is_masked_along(seen: _Seen, axis: int) -> bool:
    """The mask differs along an axis of the tensor, or may: no axis of the block goes along it."""
    index = seen.indices.get(axis)
    if index is None:
        along = [k for k, one in enumerate(seen.axes) if one == axis]
    else:
        along = [k for k, extent in enumerate(index.shape[1:]) if extent > 1]
    mask, rank = seen.access.mask, seen.offsets.ndim - 1
    if not along:
        return True
    whole = None if mask is None else lift_array(mask, rank + 1)
    if whole is not None and any(whole.shape[k + 1] > 1 and whole.strides[k + 1] for k in along):
        return True
    # What is on everywhere along an axis is not in the values: the text tells.
    shape = mask_shape(*kernel_line(), seen.access.kind, seen.buffer.name, kernel_names())
    if shape is None:
        return mask is None
    return any(((1,) * (rank - len(shape)) + shape)[k] > 1 for k in along)
