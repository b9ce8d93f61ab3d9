"""Accesses outside of their tensor."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from bragg.debug.checkers.checker import Checker, LaunchFindings
from bragg.debug.checkers.rows import program_steps, spill_of
from bragg.debug.checkers.stale import is_stale
from bragg.debug.expressions import access_text, advance_of
from bragg.debug.flow.place import kernel_line
from bragg.debug.memory.access import Access
from bragg.debug.memory.addresses import is_nowhere
from bragg.debug.memory.storage import Buffer
from bragg.debug.numbers.operands import affine_of
from bragg.debug.state import Listeners, machine
from bragg.model import Severity
from bragg.model.table import Array

__all__ = ["BOUNDS"]


def _watch(record: LaunchFindings) -> Listeners:
    def tell(access: Access, outside: Array) -> bool:
        if "stale-memory" in record.watching and is_stale(access, _first(access, outside)):
            return False  # It is reported as what it is.
        for message, chosen in _kinds(access, outside):
            if chosen.any():
                record.at_access(access, *_lanes(access, chosen), message, _fix(access, chosen))
        return True

    def look(access: Access) -> None:
        spill = spill_of(access)
        if spill is not None:
            name = access.buffer.name
            message = f"{access.kind} past the end of a row of {name} into the next: rows have {spill.pitch} elements"
            record.at_access(access, *_lanes(access, spill.lanes), message, _mask_fix(access), Severity.WARNING)

    has_rows = any(len(buffer.shape) > 1 for buffer in record.launch.buffers)
    return Listeners(out_of_bounds=[tell], access=[look] if has_rows else [])


def _wrong_stride(access: Access) -> int | None:
    """A distance between neighbours of a block that is no multiple of one of the tensor's; None: there is none."""
    block, own = affine_of(access.offset), {stride for stride in access.buffer.strides if stride > 1}
    if block is None or len(access.buffer.shape) < 2:
        return None
    steps = [abs(stride) for stride, extent in zip(block.strides, block.shape, strict=True) if extent > 1]
    return next((step for step in steps if step > 1 and own and all(step % stride for stride in own)), None)


def _first(access: Access, outside: Array) -> int:
    lane = np.flatnonzero(np.broadcast_to(outside, access.shape))[0]
    return int(np.broadcast_to(access.offset.data, access.shape).reshape(-1)[lane])


def _lanes(access: Access, chosen: Array) -> tuple[Array, Array, Array]:
    """Program, position in the block and offset of each chosen lane; `chosen` broadcasts to the access."""
    lanes_of_block = math.prod(access.shape[1:])
    found = np.flatnonzero(np.broadcast_to(chosen, access.shape))
    offsets = np.broadcast_to(access.offset.data, access.shape).reshape(-1)[found]
    return machine().active_programs[found // lanes_of_block], found % lanes_of_block, offsets


def _kinds(access: Access, outside: Array) -> Iterator[tuple[str, Array]]:
    """What is to be said of lanes outside of a tensor, and the lanes it is said of."""
    buffer, kind, offsets = access.buffer, access.kind, access.offset.data
    before = outside & (offsets < buffer.low)
    beyond = outside & (offsets >= buffer.high)
    if not len(buffer.flat):
        is_view = isinstance(buffer.owner, Buffer)
        lacks = f"is smaller than one {buffer.dtype}" if is_view else "is empty"
        place = "outside of all tensors" if is_nowhere(buffer) else f"of {buffer.name}, which {lacks}"
        yield f"{kind} {place}", outside
    elif buffer.low == 0:
        yield f"{kind} before the first element of {buffer.name}", before
        yield f"{kind} outside of {buffer.name}, which has the offsets 0 to {buffer.high - 1}", beyond
    else:
        limits = f"{buffer.low} to {buffer.high - 1}"
        yield f"{kind} outside of {buffer.name}, which has the offsets {limits}", before | beyond
    text = f"{kind} between the rows of {buffer.name}: in its memory, but not an element of the view"
    yield text, outside & ~before & ~beyond


def _fix(access: Access, chosen: Array) -> str:
    """What to change: a step that does not fit the tensor, else the mask."""
    name, own = access.buffer.name, ", ".join(map(str, access.buffer.strides))
    if (stride := _wrong_stride(access)) is not None:
        return f"The address counts {stride} elements from one row to the next, and {name} has the strides [{own}]"
    if (distance := _wrong_program_step(access)) is not None:
        return f"Programs step by {distance} elements, and {name} has the strides [{own}]"
    file, line = kernel_line()
    address = access_text(file, line, access.kind, name).address
    advance = advance_of(file, line, address) if address.isidentifier() else None
    mask = _axis_fix(access, chosen) or _mask_fix(access)
    if advance is None:
        return mask
    moved = f"the step {advance.step} of {address} in line {advance.line}"
    return f"Check {moved} against the strides [{own}] of {name}. If it is right: {mask[0].lower()}{mask[1:]}"


def _wrong_program_step(access: Access) -> int | None:
    """A distance between programs that is no multiple of one of a strided tensor's; None: there is none."""
    block, own = affine_of(access.offset), {stride for stride in access.buffer.strides if stride > 1}
    if block is None or access.buffer.gaps is None or len(access.buffer.shape) < 2 or not own:
        return None
    steps = (abs(step) for step in program_steps(block.base))
    return next((step for step in sorted(steps) if step > 1 and all(step % stride for stride in own)), None)


def _axis_fix(access: Access, chosen: Array) -> str:
    """The axis along which the first lane is outside; empty: the address does not tell."""
    buffer, offset = access.buffer, _first(access, chosen)
    if len(buffer.shape) < 2 or offset < 0 or not len(buffer.flat):
        return ""
    index = buffer.index(offset)
    outside = [axis for axis, (at, extent) in enumerate(zip(index or (), buffer.shape, strict=False)) if at >= extent]
    if len(outside) != 1 or index is None:
        return ""
    axis = outside[0]
    told = f"index {index[axis]} of axis {axis}, which has {buffer.shape[axis]}"
    mask = access_text(*kernel_line(), access.kind, buffer.name).mask
    return f"The mask {mask} lets through {told}: compare that index too" if mask else f"No mask stops {told}"


def _mask_fix(access: Access) -> str:
    mask = access_text(*kernel_line(), access.kind, access.buffer.name).mask
    if mask:
        return f"The mask {mask} lets these lanes through: compare each index with the extent of its axis"
    return "Give the access a mask that compares each index with the extent of its axis"


BOUNDS = Checker("out-of-bounds", "loads, stores and atomics outside of their tensor", True, _watch)
