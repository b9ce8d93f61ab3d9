"""Instructions of PTX on registers of many executions at once: uint64 arrays of bits.

Source: PTX ISA 8.7, chapter 9. What is not here is refused by name.
"""

from __future__ import annotations

import re
import struct
import time
from typing import Any

import numpy as np

from bragg.debug.faults import KernelFault, Unsupported
from bragg.debug.ptx import memory as ptx_memory
from bragg.debug.ptx.bits import BITWISE
from bragg.debug.ptx.conversions import convert
from bragg.debug.ptx.numbers import NumberType, arithmetic, number_type, unsupported
from bragg.debug.ptx.text import Statement
from bragg.debug.state import machine
from bragg.model.table import Array

_COMPARISONS = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "lo": np.less,
    "ls": np.less_equal,
    "hi": np.greater,
    "hs": np.greater_equal,
}
# Instructions that order or delay: programs are executed one statement after the other, so nothing is left to do.
_NO_EFFECT = {"bar", "barrier", "membar", "fence", "nanosleep", "griddepcontrol", "prefetch", "discard"}
_PROCESSORS = 132  # Of the H200 that the engine stands for.
_VECTOR = re.compile(r"\{(.*)\}", re.DOTALL)


class Registers:
    """The registers of one text.

    Args:
        executions: How often the text is executed.
    """

    def __init__(self, executions: int) -> None:
        self.executions = executions
        self._bits: dict[str, Array] = {}

    def write(self, name: str, bits: Array, where: Array | None = None) -> None:
        """Set a register, uint64 [executions], in those that a mask, bool [executions], chooses; None: in all."""
        if name == "_":
            return
        if where is not None:
            old = self._bits.get(name)
            bits = np.where(where, bits, np.zeros_like(bits) if old is None else old)
        self._bits[name] = bits

    def result(self, name: str) -> tuple[Array, bool]:
        """The bits of a register, uint64 [executions], and whether any instruction wrote it; zeros if not."""
        if name in self._bits:
            return self._bits[name], True
        return np.zeros(self.executions, np.uint64), False

    def read(self, operand: str) -> Array:
        """uint64 [executions]: the bits of a register or a literal.

        Raises:
            KernelFault: The register was never written.
        """
        if operand in self._bits:
            return self._bits[operand]
        if operand.startswith("!"):
            return np.asarray((self.read(operand[1:]) == 0).astype(np.uint64))
        literal = _literal(operand)
        if literal is None:
            literal = _special(operand)
        if literal is None:
            raise KernelFault(f"the register {operand} of inline assembly is read before it is written")
        return np.broadcast_to(np.asarray(literal, np.uint64), self.executions)

    def execute(self, statement: Statement) -> None:
        """Execute one instruction in the executions whose guard lets it.

        Raises:
            Unsupported: The engine does not know it.
        """
        where = None
        if statement.guard:
            where = (self.read(statement.guard) != 0) ^ statement.is_negated
        opcode, *modifiers = statement.parts
        if opcode in _NO_EFFECT or (opcode == "cp" and "wait_group" in statement.name):
            return
        if opcode in ptx_memory.OPCODES:
            ptx_memory.execute(self, statement, where)
        elif opcode == "mov":
            self._move(statement, where)
        elif opcode == "setp":
            self._compare(statement, where)
        else:
            target, *sources = statement.operands
            values = [self._typed(source, modifiers[-1] if modifiers else "") for source in sources]
            try:
                self.write(target, self._result(statement.name, opcode, modifiers, values), where)
            except Unsupported:
                raise unsupported(statement.name) from None

    def _typed(self, source: str, kind: str) -> Array:
        """Bits of an operand; decimal literals with a point take the type of the instruction."""
        if re.fullmatch(r"-?\d+\.\d*(e[-+]?\d+)?", source):
            code = struct.unpack("<Q", struct.pack("<d", float(source)))[0] if kind == "f64" else _float_bits(source)
            return np.broadcast_to(np.uint64(code), self.executions)
        return self.read(source)

    def _result(self, name: str, opcode: str, modifiers: list[str], values: list[Array]) -> Array:
        if opcode == "cvt":
            return convert(name, modifiers, values)
        if opcode in BITWISE:
            width = number_type(modifiers[-1]).bits if modifiers and modifiers[-1] != "pred" else 1
            return BITWISE[opcode](values, width, modifiers)
        if opcode in ("selp", "slct"):
            test = values[2] != 0 if opcode == "selp" else _signed_test(values[2], modifiers[-1])
            return np.where(test, values[0], values[1])
        if opcode == "set":
            kind = number_type(modifiers[-1])
            (holds,) = _compared(modifiers[0], kind, values, name)
            ones = 0x3F800000 if modifiers[1] == "f32" else 0xFFFFFFFF
            return np.asarray(np.where(holds, np.uint64(ones), np.uint64(0)))
        return arithmetic(name, opcode, modifiers, values)

    def _move(self, statement: Statement, where: Array | None) -> None:
        """`mov`, also between one register and a vector of its parts."""
        target, source = statement.operands
        width = number_type(statement.parts[-1]).bits if statement.parts[-1] != "pred" else 1
        inner, outer = _VECTOR.fullmatch(source), _VECTOR.fullmatch(target)
        if inner:
            parts = [self.read(part.strip()) for part in inner[1].split(",")]
            step = width // len(parts)
            total = np.zeros(self.executions, np.uint64)
            for k, part in enumerate(parts):
                total = total | (part & np.uint64((1 << step) - 1)) << np.uint64(step * k)
            self.write(target, total, where)
        elif outer:
            names = [name.strip() for name in outer[1].split(",")]
            step, bits = width // len(names), self.read(source)
            for k, name in enumerate(names):
                self.write(name, bits >> np.uint64(step * k) & np.uint64((1 << step) - 1), where)
        else:
            self.write(target, self._typed(source, statement.parts[-1]) & np.uint64((1 << width) - 1), where)

    def _compare(self, statement: Statement, where: Array | None) -> None:
        """`setp`: one or two predicates, also combined with a third operand."""
        _, comparison, *modifiers = statement.parts
        target, *sources = statement.operands
        kind = number_type(modifiers[-1])
        values = [self._typed(source, modifiers[-1]) for source in sources]
        holds = _compared(comparison, kind, values[:2], statement.name)
        targets = target.split("|")
        if kind.lanes > 1:
            for k, name in enumerate(targets):
                self.write(name.strip(), holds[k].astype(np.uint64), where)
            return
        outcomes = [holds[0], ~holds[0]]
        if len(values) > 2:
            third = values[2] != 0
            combine = {"and": np.logical_and, "or": np.logical_or, "xor": np.logical_xor}[modifiers[0]]
            outcomes = [combine(outcome, third) for outcome in outcomes]
        for name, outcome in zip(targets, outcomes, strict=False):
            self.write(name.strip(), outcome.astype(np.uint64), where)


def _compared(name: str, kind: NumberType, values: list[Array], whole: str) -> list[Array]:
    """Which executions hold, for each number of a packed type."""
    sides = [kind.split(value) for value in values]
    outcomes = []
    for a, b in zip(*sides, strict=True):
        is_nan = np.isnan(a) | np.isnan(b) if kind.is_float else np.zeros(len(a), bool)
        if name in ("num", "nan"):
            outcomes.append(is_nan if name == "nan" else ~is_nan)
        elif name in _COMPARISONS:
            outcomes.append(_COMPARISONS[name](a, b) & ~is_nan)
        elif name.endswith("u") and name[:-1] in _COMPARISONS:
            outcomes.append(_COMPARISONS[name[:-1]](a, b) | is_nan)
        else:
            raise unsupported(whole)
    return outcomes


def _signed_test(bits: Array, kind: str) -> Array:
    """The third operand of `slct` is not negative."""
    result: Array = number_type(kind).split(bits)[0] >= 0
    return result


def _literal(text: str) -> int | None:
    if text.startswith(("0f", "0F")):
        return int(text[2:], 16)
    if text.startswith(("0d", "0D")):
        return int(text[2:], 16)
    match = re.fullmatch(r"(-?)(0[xX][0-9a-fA-F]+|0[bB][01]+|\d+)U?", text)
    if match is None:
        return None
    digits = match[2]
    base = 16 if digits[:2].lower() == "0x" else 2 if digits[:2].lower() == "0b" else 10
    if base == 10 and digits.startswith("0") and len(digits) > 1:
        base = 8
    number = int(digits, base)
    return (-number if match[1] else number) % (1 << 64)


def _float_bits(text: str) -> int:
    return int(struct.unpack("<I", struct.pack("<f", float(text)))[0])


def _special(name: str) -> Any:
    """The value of a register of the hardware; None: it is none.

    Raises:
        Unsupported: It depends on which thread executes.
    """
    name = name.lstrip("%")
    if name in ("clock64", "globaltimer"):
        return time.perf_counter_ns()
    if name in ("clock", "clock_hi", "globaltimer_lo", "globaltimer_hi"):
        now = time.perf_counter_ns()
        return now >> 32 if name.endswith("_hi") else now & 0xFFFFFFFF
    if name == "smid":
        rows = machine().active_programs % _PROCESSORS
        return rows if len(rows) == 1 else 0
    if name == "nsmid":
        return _PROCESSORS
    if name.split(".")[0] in ("tid", "laneid", "warpid", "ctaid", "nctaid", "ntid", "nwarpid", "lanemask_lt"):
        raise Unsupported(
            f"%{name} in inline assembly is not supported",
            hint="Blocks are not spread over threads here: use tl.arange",
        )
    return None
