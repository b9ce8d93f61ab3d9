"""Instructions of PTX that access global memory by address."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from bragg.debug.memory import atomics, load_store
from bragg.debug.memory.provenance import pointer_of_addresses
from bragg.debug.numbers.dtypes import DTYPES
from bragg.debug.numbers.rounding import decode, encode
from bragg.debug.ptx.numbers import unsupported
from bragg.debug.state import machine
from bragg.debug.values import Pointer, Tensor
from bragg.model.table import Array

if TYPE_CHECKING:
    from bragg.debug.ptx.text import Statement

OPCODES = {"ld", "st", "atom", "red"}
_PLACE = re.compile(r"\[\s*([\w$%]+)\s*(?:\+\s*(-?\d+))?\s*\]")
_TYPES = {"f16": "fp16", "bf16": "bf16", "f32": "fp32", "f64": "fp64"}
_OPERATIONS = {"add", "min", "max", "and", "or", "xor", "exch", "cas", "inc", "dec"}
_ORDERS = {"relaxed": "relaxed", "acquire": "acquire", "release": "release", "acq_rel": "acq_rel"}


class Registers(Protocol):
    """What holds the operands."""

    def read(self, operand: str) -> Array:
        """uint64 [executions]: the bits of a register or a literal."""

    def write(self, name: str, bits: Array, where: Array | None = None) -> None:
        """Set a register, uint64 [executions], in those that a mask, bool [executions], chooses; None: in all."""


def execute(registers: Registers, statement: Statement, where: Array | None) -> None:
    """Execute a load, store or atomic.

    Args:
        registers: What holds its operands.
        statement: It.
        where: bool [executions]: those that execute it; None: all.

    Raises:
        Unsupported: It accesses other than global memory, or in a way that the engine does not know.
    """
    opcode, *modifiers = statement.parts
    if any(space in statement.name for space in (".shared", ".local", ".param", ".const", "multimem")):
        raise unsupported(statement.name)
    kind = modifiers[-1]
    element = DTYPES[_TYPES.get(kind) or f"{'int' if kind[0] == 's' else 'uint'}{kind.lstrip('bsu')}"]
    place = next(operand for operand in statement.operands if operand.startswith("["))
    others = [operand for operand in statement.operands if operand is not place]
    match = _PLACE.fullmatch(place)
    if match is None:
        raise unsupported(statement.name)
    count = next((int(part[1:]) for part in modifiers if part in ("v2", "v4", "v8")), 1)
    mask = None if where is None else _by_program(where)
    order = next((_ORDERS[part] for part in modifiers if part in _ORDERS), "relaxed")
    base = registers.read(match[1]).astype(np.int64) + int(match[2] or 0)
    if opcode in ("atom", "red"):
        operation = next(part for part in modifiers if part in _OPERATIONS)
        values = [_tensor(registers.read(one), element) for one in others[opcode == "atom" :]]
        old = _atomically(statement.name, operation, _pointer(base, element), values, mask, order)
        if opcode == "atom":
            registers.write(others[0], _register(old), where)
        return
    is_atomic = bool(set(modifiers) & (set(_ORDERS) | {"volatile"}))
    names = [name.strip() for name in others[0].strip("{}").split(",")]
    for k in range(count):
        pointer = _pointer(base + k * element.size_bytes, element)
        if opcode == "ld":
            read = atomics.read(pointer, mask, order) if is_atomic else _loaded(pointer, mask)
            registers.write(names[k], _register(read), where)
        elif is_atomic:
            atomics.write(pointer, _tensor(registers.read(names[k]), element), mask, order)
        else:
            load_store.store(pointer, _tensor(registers.read(names[k]), element), mask)


def _loaded(pointer: Pointer, mask: Tensor | None) -> Tensor:
    """Zeros where a guard is off."""
    return load_store.load(pointer, mask, None if mask is None else 0)


def _atomically(name: str, operation: str, pointer: Pointer, values: list[Tensor], mask: Any, order: str) -> Tensor:
    if operation == "cas":
        if mask is not None:
            raise unsupported(f"{name} with a guard")
        return atomics.compare_and_swap(pointer, values[0], values[1], order)
    known = "xchg" if operation == "exch" else operation
    if known not in atomics.ATOMICS:
        raise unsupported(name)
    return atomics.read_modify_write(known, pointer, values[0], mask, order)


def _pointer(addresses: Array, element: Any) -> Pointer:
    return pointer_of_addresses(Tensor(_rows(addresses), DTYPES["int64"]), element)


def _rows(values: Array) -> Array:
    """[active programs, lanes]."""
    return values.reshape(len(machine().rows), -1)


def _by_program(where: Array) -> Tensor:
    return Tensor(_rows(where), DTYPES["int1"])


def _tensor(bits: Array, element: Any) -> Tensor:
    unit = _rows(bits).astype(f"u{element.size_bytes}")
    return Tensor(decode(np.ascontiguousarray(unit).view(element.storage), element), element)


def _register(values: Tensor) -> Array:
    whole = np.broadcast_to(values.data, (len(machine().rows), *values.shape))
    bits = np.ascontiguousarray(encode(np.ascontiguousarray(whole), values.dtype))
    result: Array = bits.view(f"u{values.dtype.size_bytes}").astype(np.uint64).reshape(-1)
    return result
