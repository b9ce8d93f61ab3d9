"""Loads and stores."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from bragg.debug.faults import KernelFault, RuntimeFault
from bragg.debug.memory.access import Access, prefix
from bragg.debug.memory.provenance import JointBuffer, parts
from bragg.debug.numbers.affine import Affine
from bragg.debug.numbers.casts import cast
from bragg.debug.numbers.dtypes import DTYPES, DType
from bragg.debug.numbers.operands import affine_of, as_tensor
from bragg.debug.numbers.shapes import broadcast_to, common_shape
from bragg.debug.state import leaves_out, machine
from bragg.debug.values import (
    CHOSEN,
    FILLED,
    LOADS,
    MEANINGLESS,
    MISLED,
    OUTSIDE,
    OVERFLOWN,
    SIGNAL,
    UNDEFINED,
    UNWRITTEN,
    Pointer,
    Tensor,
    bits_of,
    lift_array,
)
from bragg.model.table import Array

_CHOSEN = np.uint32(CHOSEN)
_MEANINGLESS_PLACES = tuple(bit for bit in MEANINGLESS if bit != CHOSEN)
_ANY_LOAD = np.uint32(sum(LOADS))


def load(pointer: Any, mask: Any = None, other: Any = None, volatile: bool = False) -> Tensor:
    """Read a block; elements whose address rests on a broken promise, or on a choice, rest on it too.

    Args:
        pointer: Block of pointers.
        mask: Lanes to read; None: all.
        other: Value of the lanes that are not read; None leaves them undefined.
        volatile: Other programs may write there at the same time.
    """
    where = _pointer(pointer)
    if other is not None and mask is None:
        raise KernelFault(
            "tl.load takes `other` only with `mask`", hint="Say which lanes are to be read, or drop other"
        )
    result = _loaded(where, mask, other, volatile)
    test = mask if isinstance(mask, Tensor) else None
    if where.offset.taint is None and (test is None or test.taint is None):
        return result
    return _with_taint_of_place(result, where.offset.taint, test)


def _with_taint_of_place(loaded: Tensor, address: Array | None, test: Tensor | None) -> Tensor:
    if address is not None:
        loaded = loaded.tainted(address & MISLED != 0, MISLED)
    lanes, doubt = (None, None) if test is None else (test.data, test.taint)
    for taint in (_of_lanes(address, lanes), doubt):
        if taint is not None:
            loaded = loaded.with_taint(np.where(taint & _CHOSEN, taint & (_CHOSEN | _ANY_LOAD), np.uint32(0)))
    return loaded


def _loaded(where: Pointer, mask: Any, other: Any, volatile: bool) -> Tensor:
    shape = where.shape
    machine().largest_block = max(machine().largest_block, where.numel)
    test = _mask(mask, where)
    if test is not None and test.shape != shape:
        shape = common_shape(shape, test.shape)
        where = broadcast_to(where, shape)
    report_taint("load", where, test)
    if isinstance(where.buffer, JointBuffer):
        return _load_parts(where, test, other, volatile)
    is_on = None if test is None else checked_constant(test)
    wanted = lanes = None if test is None or is_on else test.data
    origin = 0
    if is_on is False:
        data: Array = np.zeros((1, *shape), where.element.carrier)
    else:
        access = _told("load", where, lanes, "relaxed" if volatile else "")
        data, reachable, origin = _read(where, access.mask), access.mask, access.origin
        lanes = lanes if lanes is None or reachable is lanes or other is None else reachable
        outside = lanes_outside(wanted, reachable)
        if outside is not None or access.unwritten is not None:
            filled = _filled(data, where.element, shape, lanes, other, origin)
            filled = filled if outside is None else filled.tainted(outside, OUTSIDE)
            return filled if access.unwritten is None else filled.tainted(access.unwritten_block(), UNWRITTEN | origin)
    return _filled(data, where.element, shape, lanes if is_on is not False else test, other, origin)


def lanes_outside(wanted: Array | None, inside: Array | None) -> Array | None:
    """Lanes that were to be read and are not elements of the tensor; None: there are none.

    Masks are bool [programs or 1, *block].

    Args:
        wanted: Lanes that a mask leaves on; None: all.
        inside: Those that may be read, as `checked_mask` gives them.
    """
    if inside is None or inside is wanted:
        return None
    outside: Array = ~inside if wanted is None else lift_array(wanted, inside.ndim) & ~inside
    return outside


def _load_parts(where: Pointer, test: Tensor | None, other: Any, volatile: bool) -> Tensor:
    data: Array = np.zeros((1, *where.shape), where.element.carrier)
    outside: Array = np.zeros_like(data, np.bool_)
    for part, chosen in chosen_parts(where, test):
        piece = load(part, chosen, 0 if where.element.is_int() else 0.0, volatile)
        data = np.where(chosen.data, piece.data, data)
        if piece.taint is not None:
            outside = outside | (chosen.data & (piece.taint & OUTSIDE != 0))
    filled = _filled(data, where.element, where.shape, test, other)
    return filled.tainted(outside, OUTSIDE) if outside.any() else filled


def chosen_parts(where: Pointer, test: Tensor | None) -> Iterator[tuple[Pointer, Tensor]]:
    """For each tensor of a joint pointer: a pointer into it, and its lanes among those of a mask."""
    for part, lanes in parts(where):
        chosen = lanes if test is None else lanes & lift_array(test.data, lanes.ndim)
        if chosen.any():
            yield part, Tensor(chosen, DTYPES["int1"])


def checked_constant(test: Tensor) -> bool | None:
    """True or False for a mask known to be constant; None for any other."""
    if test.bounds is not None and test.bounds[0] == test.bounds[1]:
        return bool(test.bounds[0])
    return None


def _filled(data: Array, dtype: DType, shape: tuple[int, ...], mask: Any, other: Any, origin: int = 0) -> Tensor:
    """Loaded data with the value, or the taint, of masked lanes."""
    if mask is None:
        return Tensor(data, dtype)
    lanes = mask.data if isinstance(mask, Tensor) else mask
    lanes = lift_array(lanes, len(shape) + 1)
    if other is None:
        if lanes.all():
            return Tensor(data, dtype)
        if (garbage := machine().listeners.garbage) is not None:
            return Tensor(np.where(lanes, data, _garbage(garbage, dtype, data.shape)), dtype)
        return Tensor(data, dtype, taint=~lanes * np.uint32(UNDEFINED | origin))
    filler = broadcast_to(cast(as_tensor(other), dtype), shape)
    mark = FILLED | origin if leaves_out() is not None and _counts_for_nothing(filler) else 0
    if not mark and filler.taint is None and _is_plain_zero(filler):
        return Tensor(data, dtype)  # Lanes that were not read hold zero.
    rank = len(shape) + 1
    taint = None
    if filler.taint is not None:
        taint = np.where(lanes, np.uint8(0), lift_array(filler.taint, rank))
    if mark:
        taint = ~lanes * np.uint32(mark) | (np.uint32(0) if taint is None else taint)
    return Tensor(np.where(lanes, data, filler.data), dtype, taint=taint)


def _is_plain_zero(filler: Tensor) -> bool:
    """Lanes that are not read hold it anyway."""
    return filler.programs == 1 and not filler.data.any() and not np.signbit(filler.data).any()


def _counts_for_nothing(filler: Tensor) -> bool:
    """It is 0 or infinite, as what is to change no result; any other number is a value that the author has chosen."""
    return not filler.data[np.isfinite(filler.data)].any()


def _garbage(random: np.random.Generator, dtype: DType, shape: tuple[int, ...]) -> Array:
    """Values that may stand anywhere: of floats half are NaN, the others large; of integers all bits."""
    if dtype.is_floating():
        numbers = random.standard_normal(shape) * 1e30
        return np.where(random.random(shape) < 0.5, np.nan, numbers).astype(dtype.carrier)
    bits = random.integers(-(1 << 63), 1 << 63, shape, np.int64)
    return (bits & 1 if dtype.carrier == np.bool_ else bits).astype(dtype.carrier)


def store(pointer: Any, value: Any, mask: Any = None) -> None:
    """Write a block; where lanes of one statement write the same element, the last program wins."""
    where = _pointer(pointer)
    where.buffer.check_writable()
    machine().largest_block = max(machine().largest_block, where.numel)
    machine().writes += 1
    test = _mask(mask, where)
    content = cast(value if isinstance(value, Pointer) else as_tensor(value), where.element)
    if content.shape and not where.shape:
        raise KernelFault("a single pointer was given a block to store", hint="Use a block of pointers")
    shape = common_shape(where.shape, content.shape, where.shape if test is None else test.shape)
    if shape != where.shape:
        raise KernelFault(
            f"Expected pointer argument to have shape {list(shape)} but got {list(where.shape)}",
            hint="Give the block of pointers all axes of what is stored",
        )
    content = broadcast_to(content, shape)
    test = None if test is None else broadcast_to(test, shape)
    report_taint("store", where, test)
    if isinstance(where.buffer, JointBuffer):
        for part, chosen in chosen_parts(where, test):
            store(part, content, chosen)
        return
    is_on = None if test is None else checked_constant(test)
    if is_on is False:
        return
    lanes = None if test is None or is_on else test.data
    report_stored_taint(content, lanes, where)
    _write(where, content, checked_mask("store", where, lanes, value=content))


def _pointer(pointer: Any) -> Pointer:
    if not isinstance(pointer, Pointer):
        raise KernelFault(f"memory is accessed through pointers, not {pointer!r}", hint="Pass a tensor to the kernel")
    if pointer.element.minifloat is not None:
        machine().require_type(pointer.element)
    return pointer


def _mask(mask: Any, pointer: Pointer) -> Tensor | None:
    if mask is None:
        return None
    test = as_tensor(mask)
    if test.dtype.bits != 1:
        raise KernelFault(f"a mask holds booleans, not {test.dtype}", hint="Compare it: mask != 0")
    if test.shape and not pointer.shape:
        raise KernelFault("a single pointer was given a block as its mask", hint="Use a block of pointers")
    return test


def report_taint(use: str, where: Pointer, test: Tensor | None) -> None:
    """Tell of masks, and of addresses of lanes that are on, which were computed from meaningless elements.

    A load at an address that is chosen among known ones does no harm by itself: as of any other, it is told where it
    leaves its tensor, and its result is as uncertain as the choice.
    """
    if where.offset.taint is None and (test is None or test.taint is None):
        return
    addresses = _of_lanes(where.offset.taint, None if test is None else test.data)
    for taint in (where.offset.taint, None if test is None else test.taint):
        machine().tell_decision(taint, SIGNAL)
    for taint in (addresses, None if test is None else test.taint):
        present = 0 if taint is None else bits_of(taint)
        for bit in MEANINGLESS if use != "load" else _MEANINGLESS_PLACES:
            if present & bit:
                machine().tell_taint(use, taint, bit, where.buffer)


def _of_lanes(taint: Array | None, lanes: Array | None) -> Array | None:
    """A taint without that of lanes that are off; `lanes` None: all are on."""
    if taint is None or lanes is None:
        return taint
    rank = max(taint.ndim, lanes.ndim)
    kept: Array = lift_array(taint, rank) * lift_array(lanes, rank)
    return kept


def report_stored_taint(content: Tensor, lanes: Array | None, where: Pointer, use: str = "store") -> None:
    """Tell of what is wrong with elements, or their addresses, in lanes that are written.

    Args:
        content: What is written.
        lanes: Their mask, bool [programs or 1, *block]; None: all.
        where: Pointers to them.
        use: How they are written.
    """
    if content.taint is None and where.offset.taint is None:
        return
    for taint, bits in ((content.taint, (*MEANINGLESS, MISLED)), (where.offset.taint, (MISLED,))):
        written = _of_lanes(taint, lanes)
        present = 0 if written is None else bits_of(written)
        for bit in bits:
            if present & bit:
                machine().tell_taint(use if bit == MISLED else "store", written, bit, where.buffer)
        if present & OVERFLOWN and taint is content.taint and content.dtype.bits == 8:
            machine().tell_taint("stored in 8 bits", written, OVERFLOWN, where.buffer)


def checked_mask(
    kind: str, where: Pointer, mask: Array | None, order: str = "", value: Tensor | None = None, scope: str = ""
) -> Array | None:
    """The mask without the lanes that are outside of the tensor, after all listeners were called.

    Masks are bool [programs or 1, *block]; None: all lanes.

    Raises:
        KernelFault: A lane is outside, and nobody listens.
    """
    return _told(kind, where, mask, order, value, scope).mask


def _told(
    kind: str, where: Pointer, mask: Array | None, order: str = "", value: Tensor | None = None, scope: str = ""
) -> Access:
    """The access to what is inside of the tensor, after all listeners were called."""
    now = machine()
    access = Access(kind, where.buffer, where.offset, mask, where.element, order, value, scope)
    if not where.buffer.has_inside(_bounds(where.offset)):
        offsets = where.offset.data
        outside = where.buffer.outside(offsets)
        if mask is not None:
            outside = outside & lift_array(mask, outside.ndim)
        if outside.any():
            _tell_outside(access, outside)
            inside = ~outside
            mask = inside if mask is None else inside & lift_array(mask, outside.ndim)
            access = Access(kind, where.buffer, where.offset, mask, where.element, order, value, scope)
    for listener in now.listeners.access:
        listener(access)
    return access


def _bounds(offset: Tensor) -> tuple[int, int]:
    """Exact for a closed form, else what is known or found."""
    if offset.affine is not None:
        return offset.affine.bounds()
    return offset.known_bounds()


def _tell_outside(access: Access, outside: Array) -> None:
    told = [listener(access, outside) for listener in machine().listeners.out_of_bounds]
    if any(told):
        return
    lane = np.flatnonzero(outside)[0]
    offset = int(np.broadcast_to(access.offset.data, outside.shape).reshape(-1)[lane])
    raise RuntimeFault(
        f"out-of-bounds {access.kind} of {access.buffer.name}{list(access.buffer.shape)}: element offset {offset}",
        hint="bragg check tells which programs and lanes",
    )


def _read(where: Pointer, mask: Array | None) -> Array:
    """Values of the lanes that are on, 0 in the others."""
    buffer, block, shape = where.buffer, affine_of(where.offset), where.shape
    if block is not None and min(block.strides, default=0) >= 0:
        if mask is None:
            return buffer.read_affine(block, where.element)
        count = prefix(mask, shape)
        if count:
            data = np.zeros((len(block.base), *shape), where.element.carrier)
            data[:, :count] = buffer.read_affine(Affine(block.base, block.strides, (count,)), where.element)
            return data
    offsets = where.offset.data
    if mask is None:
        return buffer.read(offsets, where.element)
    mask = lift_array(mask, offsets.ndim)
    if not mask.any():
        return np.zeros((1, *shape), where.element.carrier)
    data = buffer.read(np.where(mask, offsets, buffer.low), where.element)
    return np.where(mask, data, data.dtype.type(0))


def _write(where: Pointer, content: Tensor, mask: Array | None) -> None:
    buffer, block, shape = where.buffer, affine_of(where.offset), where.shape
    programs = len(machine().rows)
    if block is not None and min(block.strides, default=0) >= 0:
        data = content.data
        if len(block.base) == 1 and len(data) > 1:
            data = data[-1:] if mask is None else data  # All write one place: the last program wins.
        if mask is None and buffer.write_affine(block, data, where.element):
            return
        count = None if mask is None else prefix(mask, shape)
        if count and len(data) <= len(block.base):
            part = Affine(block.base, block.strides, (count,))
            if buffer.write_affine(part, data[:, :count], where.element):
                return
    full = (programs, *shape)
    offsets = np.broadcast_to(where.offset.data, full)
    values = np.broadcast_to(content.data, full)
    if mask is None:
        buffer.write(offsets, values, where.element)
        return
    lanes = np.broadcast_to(lift_array(mask, len(full)), full)
    buffer.write(offsets[lanes], values[lanes], where.element)
