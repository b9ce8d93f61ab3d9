"""Atomic operations: lanes take effect one after the other, in the order of programs and lanes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from bragg.debug.faults import KernelFault, RuntimeFault
from bragg.debug.memory.load_store import (
    checked_mask,
    chosen_parts,
    lanes_outside,
    report_stored_taint,
    report_taint,
)
from bragg.debug.memory.provenance import JointBuffer
from bragg.debug.memory.storage import Buffer
from bragg.debug.numbers.casts import cast
from bragg.debug.numbers.dtypes import DType
from bragg.debug.numbers.operands import as_tensor
from bragg.debug.numbers.rounding import round_to
from bragg.debug.numbers.shapes import broadcast_to, common_shape
from bragg.debug.state import machine
from bragg.debug.values import OPERATORS, OUTSIDE, SIGNAL, Pointer, Tensor, lift_array, scalar
from bragg.model.table import Array

# What an operation makes of the old value and the operand.
ATOMICS: dict[str, Callable[[Array, Array], Array]] = {
    "add": np.add,
    "max": np.fmax,
    "min": np.fmin,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "xchg": lambda old, new: new,
}
ATOMICS_WITH_NAN: dict[str, Callable[[Array, Array], Array]] = {**ATOMICS, "max": np.maximum, "min": np.minimum}
"""The same, with NaN as the result if one of both is NaN."""

_ORDERS = ("relaxed", "acquire", "release", "acq_rel")
_ORDERS_OF_LOADS = ("relaxed", "acquire")
_ORDERS_OF_STORES = ("relaxed", "release")

# How often a poll with a time limit looks: no clock runs in the engine.
_TURNS_OF_A_TIMEOUT = 64


def read_modify_write(
    operation: str, pointer: Any, value: Any, mask: Any = None, sem: str | None = None, scope: str | None = None
) -> Tensor:
    """An atomic operation; gives the old values."""
    where = _target(pointer, mask, sem)
    if operation in ("and", "or", "xor") and where.element.is_floating():
        raise KernelFault(f"atomic_{operation} takes integers, not {where.element}")
    if where.element.bits < 32 and not (operation == "add" and where.element.name in ("fp16", "bf16")):
        raise KernelFault(f"Triton has no atomic_{operation} of {where.element}", hint="Use elements of 32 or 64 bits")
    return _modified(ATOMICS[operation], where, value, mask, (sem or "acq_rel", _checked_scope(scope)))


def reduce(operation: str, pointer: Pointer, value: Any, mask: Any) -> None:
    """An atomic operation of a copy, which knows more types than those of threads, and orders nothing."""
    function = _WITH_ZEROS.get(operation, ATOMICS[operation])
    _modified(function, _target(pointer, mask, None), value, mask, ("relaxed", "gpu"))


# A Hopper GPU takes -0 for less than 0.
_WITH_ZEROS: dict[str, Callable[[Array, Array], Array]] = {
    "max": lambda old, new: np.where((old == 0) & (new == 0), old + new, np.fmax(old, new)),
    "min": lambda old, new: np.where((old == 0) & (new == 0), -(-old + -new), np.fmin(old, new)),
}


def _modified(function: Any, where: Pointer, value: Any, mask: Any, how: tuple[str, str]) -> Tensor:
    content = broadcast_to(cast(as_tensor(value), where.element), where.shape)
    report_stored_taint(content, None if mask is None else as_tensor(mask).data, where, "atomic")
    return _changed(where, mask, how, function, content)


def compare_and_swap(
    pointer: Any, expected: Any, value: Any, sem: str | None = None, scope: str | None = None
) -> Tensor:
    """Write a value where the old one is the expected one; gives the old values."""
    where = _target(pointer, None, sem)
    for operand in map(as_tensor, (expected, value)):
        if (operand.dtype.bits, operand.dtype.is_floating()) != (where.element.bits, where.element.is_floating()):
            raise KernelFault(
                f"atomic_cas of {where.element} takes values of that type, not {operand.dtype}",
                hint=f"Make the number a tensor: tl.full((), 0, tl.{where.element.name})",
            )
    old = broadcast_to(cast(as_tensor(expected), where.element), where.shape)
    new = broadcast_to(cast(as_tensor(value), where.element), where.shape)
    report_stored_taint(old, None, where, "atomic")
    report_stored_taint(new, None, where, "atomic")
    return _changed(where, None, (sem or "acq_rel", _checked_scope(scope)), None, old, new)


def read(pointer: Any, mask: Any = None, sem: str | None = None, scope: str | None = None) -> Tensor:
    """An atomic load."""
    where = _target(pointer, mask, sem, _ORDERS_OF_LOADS)
    unused = broadcast_to(scalar(0, where.element), where.shape)
    return _changed(where, mask, (sem or "acquire", _checked_scope(scope)), lambda old, _: old, unused)


def write(pointer: Any, value: Any, mask: Any = None, sem: str | None = None, scope: str | None = None) -> None:
    """An atomic store."""
    where = _target(pointer, mask, sem, _ORDERS_OF_STORES)
    content = broadcast_to(cast(as_tensor(value), where.element), where.shape)
    report_stored_taint(content, None if mask is None else as_tensor(mask).data, where, "atomic")
    _changed(where, mask, (sem or "release", _checked_scope(scope)), ATOMICS["xchg"], content)


def poll(
    pointer: Any, expected: Any, sem: str | None = None, scope: str | None = None, timeout_ns: Any = None
) -> Tensor:
    """Wait until elements have the expected values; gives which of them had it before the time was over.

    Raises:
        KernelFault: The programs do not take turns, so nobody could write what is waited for.
    """
    turns = 0
    while True:
        seen = OPERATORS["eq"](read(pointer, None, sem, scope), expected)
        machine().tell_decision(seen.taint, SIGNAL)
        if seen.data.all() or (timeout_ns is not None and turns >= _TURNS_OF_A_TIMEOUT):
            return seen  # type: ignore[no-any-return]
        now = machine()
        if now.turn is None:
            raise RuntimeFault("tl.atomic_poll waits for what no other program can write", hint="Write it before")
        now.writes += timeout_ns is not None  # A wait that ends by itself is not a deadlock.
        now.turn()
        turns += 1


def _target(pointer: Any, mask: Any, sem: str | None, orders: tuple[str, ...] = _ORDERS) -> Pointer:
    """The elements, one for each lane."""
    if not isinstance(pointer, Pointer):
        raise KernelFault("an atomic operation needs a pointer", hint="Pass a tensor to the kernel")
    if sem is not None and sem not in orders:
        raise KernelFault(f"unknown memory order {sem!r}", hint=f"Choose one of: {', '.join(orders)}")
    pointer.buffer.check_writable()
    machine().largest_block = max(machine().largest_block, pointer.numel)
    test = None if mask is None else as_tensor(mask)
    shape = pointer.shape if test is None else common_shape(pointer.shape, test.shape)
    report_taint("atomic", pointer, test)
    whole: Pointer = broadcast_to(pointer, shape)
    return whole


def _changed(where: Pointer, mask: Any, how: tuple[str, str], function: Any, *operands: Tensor) -> Tensor:
    """Let the lanes that a mask leaves on take effect, after all listeners were called; gives the old values.

    Args:
        where: The elements.
        mask: Lanes that take effect; None: all.
        how: Memory order and scope.
        function: None for compare-and-swap.
        operands: Of the function.
    """
    order, scope = how
    test = None if mask is None else as_tensor(mask)
    if not isinstance(where.buffer, JointBuffer):
        wanted = None if test is None else test.data
        lanes = checked_mask("atomic", where, wanted, order, scope=scope)
        result = _old_values(_apply(where, where.shape, lanes, function, *operands), lanes_outside(wanted, lanes))
    else:
        result = Tensor(np.zeros((1, *where.shape), where.element.carrier), where.element)
        for part, chosen in chosen_parts(where, test):
            lanes = checked_mask("atomic", part, chosen.data, order, scope=scope)
            old = np.where(chosen.data, _apply(part, where.shape, lanes, function, *operands).data, result.data)
            result = _old_values(Tensor(old, where.element, taint=result.taint), lanes_outside(chosen.data, lanes))
    if machine().listeners.decision and order in ("acquire", "acq_rel"):
        result = result.with_taint(np.full((1,) * (len(where.shape) + 1), SIGNAL, np.uint8))
        for listener in machine().listeners.returned:
            listener(result)
    return result


def _old_values(read: Tensor, outside: Array | None) -> Tensor:
    """What was read, of which lanes outside of the tensor have no value; None: there are none."""
    return read if outside is None else read.tainted(outside, OUTSIDE)


def _checked_scope(scope: str | None) -> str:
    if scope not in (None, "cta", "gpu", "sys"):
        raise KernelFault(f"unknown scope {scope!r}", hint="Choose one of: cta, gpu, sys")
    return scope or "gpu"


def _apply(where: Pointer, shape: tuple[int, ...], mask: Array | None, function: Any, *operands: Tensor) -> Tensor:
    """Let the lanes take effect; `function` is None for compare-and-swap."""
    buffer, dtype, full = where.buffer, where.element, (len(machine().rows), *shape)
    if full == (1,) and mask is None:
        old, changed = _alone(buffer, where.offset.data, [operand.data for operand in operands], dtype, function)
        _tell_of_change(changed)
        return Tensor(old, dtype)
    offsets = np.broadcast_to(where.offset.data, full).reshape(-1)
    values = [np.broadcast_to(operand.data, full).reshape(-1) for operand in operands]
    chosen = np.arange(len(offsets))
    if mask is not None:
        chosen = np.flatnonzero(np.broadcast_to(lift_array(mask, len(full)), full))
    old = np.zeros(len(offsets), dtype.carrier)
    if len(chosen):
        old[chosen], changed = _in_turn(buffer, offsets[chosen], [value[chosen] for value in values], dtype, function)
        _tell_of_change(changed)
    return Tensor(old.reshape(full), dtype)


def _tell_of_change(has_changed: bool) -> None:
    now = machine()
    now.writes += has_changed
    tell = now.after_atomic
    if has_changed and tell is not None:
        tell()


def _alone(buffer: Buffer, offsets: Array, values: list[Array], dtype: DType, function: Any) -> tuple[Array, bool]:
    """As `_in_turn` does, for one lane: a lock is taken so."""
    old = buffer.read(offsets, dtype)
    new = np.where(old == values[0], values[1], old) if function is None else function(old, values[0])
    new = round_to(new, dtype) if dtype.is_narrow else new
    if not (has_changed := bool((old != new).any())):
        return old.astype(dtype.carrier), False
    buffer.write(offsets, new.astype(old.dtype), dtype)
    return old.astype(dtype.carrier), has_changed


def _in_turn(buffer: Buffer, offsets: Array, values: list[Array], dtype: DType, function: Any) -> tuple[Array, bool]:
    """Old values of lanes that take effect in order, and whether memory changed.

    Lanes on different elements cannot see each other, so turn k handles the k-th lane of every element.
    """
    if len(offsets) == 1:
        return _alone(buffer, offsets, values, dtype, function)
    order = np.argsort(offsets, kind="stable")
    places = offsets[order]
    starts = np.flatnonzero(np.r_[True, places[1:] != places[:-1]])
    counts = np.diff(np.r_[starts, len(places)])
    elements = places[starts]
    memory = buffer.read(elements, dtype)
    before = memory.copy()
    old = np.empty(len(offsets), dtype.carrier)
    if function is not None and counts.max() > 64 and isinstance(function, np.ufunc) and not dtype.is_narrow:
        for k, (start, count) in enumerate(zip(starts.tolist(), counts.tolist(), strict=True)):
            lanes = order[start : start + count]
            running = function.accumulate(np.r_[memory[k : k + 1], values[0][lanes]], dtype=dtype.carrier)
            old[lanes], memory[k] = running[:-1], running[-1]
    else:
        for turn in range(int(counts.max())):
            live = np.flatnonzero(counts > turn)
            lanes = order[starts[live] + turn]
            now = memory[live]
            old[lanes] = now
            operands = [value[lanes] for value in values]
            new = np.where(now == operands[0], operands[1], now) if function is None else function(now, operands[0])
            memory[live] = round_to(new, dtype) if dtype.is_narrow else new
    buffer.write(elements, memory, dtype)
    return old, bool((before != memory).any())
