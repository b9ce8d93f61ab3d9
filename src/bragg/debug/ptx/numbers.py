"""Numbers in registers of PTX, and arithmetic on them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from bragg.debug.faults import Unsupported
from bragg.debug.numbers.directed import MODES, operate
from bragg.debug.numbers.dtypes import DTYPES
from bragg.debug.numbers.mathematics import exp2_flushed
from bragg.debug.numbers.rounding import decode, encode, flushed, round_to
from bragg.model.table import Array

_FLOATS = {"f16": "fp16", "bf16": "bf16", "f32": "fp32", "f64": "fp64"}


def unsupported(name: str) -> Unsupported:
    """What is raised for an instruction that is not known."""
    return Unsupported(f"the PTX instruction {name} is not supported", hint="Write it with functions of Triton")


@dataclass(frozen=True)
class NumberType:
    """A type of PTX: one number or several side by side.

    Attributes:
        bits: Of all of them together.
        lanes: How many there are.
        is_float: Floats, else integers.
        signed: Of integers.
        name: Of a float's type in the engine.
    """

    bits: int
    lanes: int
    is_float: bool
    signed: bool
    name: str = ""

    @property
    def width(self) -> int:
        """Bits of one number."""
        return self.bits // self.lanes

    def split(self, registers: Array) -> list[Array]:
        """The numbers of a register, the lowest first: int64, uint64, float32 or float64, each [executions]."""
        return [self._number(registers >> np.uint64(self.width * k)) for k in range(self.lanes)]

    def _number(self, bits: Array) -> Array:
        unit = bits.astype(f"u{self.width // 8}")
        if self.is_float:
            dtype = DTYPES[self.name]
            result: Array = decode(unit.view(dtype.storage), dtype)
            return result
        return unit.view(f"i{self.width // 8}").astype(np.int64) if self.signed else unit.astype(np.uint64)

    def joined(self, numbers: Sequence[Array]) -> Array:
        """The register of numbers, uint64 [executions]; integers lose the bits that do not fit."""
        total: Any = np.uint64(0)
        for k, number in enumerate(numbers):
            if self.is_float:
                dtype = DTYPES[self.name]
                code = np.ascontiguousarray(encode(np.ascontiguousarray(number), dtype))
                unit = code.view(f"u{self.width // 8}").astype(np.uint64)
            else:
                unit = number.astype(np.uint64) & np.uint64((1 << self.width) - 1)
            total = total | unit << np.uint64(self.width * k)
        return np.asarray(total)

    def finished(self, number: Array) -> Array:
        """A float of any shape that was computed in the carrier, rounded to the type."""
        return round_to(number, DTYPES[self.name]) if self.name in ("fp16", "bf16") else number


@cache
def number_type(text: str) -> NumberType:
    """The type that a modifier such as `f16x2` names.

    Raises:
        Unsupported: It is none that the engine knows.
    """
    name, _, count = text.partition("x")
    lanes = int(count) if count.isdigit() else 1
    kind, digits = name.rstrip("0123456789"), name[len(name.rstrip("0123456789")) :]
    if kind not in ("b", "u", "s", "f", "bf") or not digits or (kind in ("f", "bf") and name not in _FLOATS):
        raise Unsupported(f"the PTX type {text!r} is not supported", hint="Write it with functions of Triton")
    return NumberType(int(digits) * lanes, lanes, name in _FLOATS, kind == "s", _FLOATS.get(name, ""))


def arithmetic(name: str, opcode: str, modifiers: list[str], values: list[Array]) -> Array:
    """The result of an instruction on registers: uint64 [executions], as they are.

    Raises:
        Unsupported: The instruction is not known.
    """
    if not modifiers:
        raise unsupported(name)
    if opcode == "dp4a":
        return _dot_of_bytes(modifiers, values)
    kind = number_type(modifiers[-1])
    if not kind.is_float:
        return _integers(name, opcode, modifiers, kind, values)
    if opcode == "testp":
        return _TESTS[modifiers[0]](kind.split(values[0])[0]).astype(np.uint64)
    sides = zip(*(kind.split(value) for value in values), strict=True)
    return kind.joined([_float(name, opcode, modifiers, kind, operands) for operands in sides])


_TESTS: dict[str, Callable[[Array], Array]] = {
    "notanumber": np.isnan,
    "number": lambda x: ~np.isnan(x),
    "finite": np.isfinite,
    "infinite": np.isinf,
}


def _dot_of_bytes(modifiers: list[str], values: list[Array]) -> Array:
    """`dp4a`: four products of bytes, added to the third operand."""
    sides = [number_type(f"{kind[0]}8x4").split(value) for kind, value in zip(modifiers, values, strict=False)]
    total = values[2].astype(np.int64)
    for a, b in zip(*sides, strict=True):
        total = total + a.astype(np.int64) * b.astype(np.int64)
    return np.asarray(total.astype(np.uint64) & np.uint64(0xFFFFFFFF))


def _integers(name: str, opcode: str, modifiers: list[str], kind: NumberType, values: list[Array]) -> Array:
    if opcode in ("mul", "mad") and "wide" in modifiers:
        product = np.multiply(*(kind.split(value)[0].astype(np.uint64) for value in values[:2]))
        wide = product if opcode == "mul" else product + values[2]
        return np.asarray(wide & np.uint64((1 << min(2 * kind.bits, 64)) - 1))
    if opcode in ("mul", "mad") and "hi" in modifiers:
        high = _high_half(kind, values[0], values[1])
        return kind.joined([high if opcode == "mul" else high + values[2]])
    if opcode in ("mul24", "mad24"):
        full = number_type("s32" if kind.signed else "u32")
        low = [(full.split(value << np.uint64(8))[0] >> 8).astype(np.int64) for value in values[:2]]
        product = (low[0] * low[1]).astype(np.uint64)
        return kind.joined([product if opcode == "mul24" else product + values[2]])
    function = _INTEGERS.get(opcode)
    if function is None or (set(modifiers) & {"cc", "sat"}):
        raise unsupported(name)
    sides = zip(*(kind.split(value) for value in values), strict=True)
    return kind.joined([function(*operands) for operands in sides])


def _high_half(kind: NumberType, a: Array, b: Array) -> Array:
    if kind.bits == 64:
        exact = kind.split(a)[0].astype(object) * kind.split(b)[0].astype(object)
        return np.asarray((exact >> 64 & ((1 << 64) - 1)).astype(np.uint64))
    product = kind.split(a)[0] * kind.split(b)[0]
    return np.asarray((product >> product.dtype.type(kind.bits)).astype(np.uint64))


def _quotient(x: Array, y: Array) -> Array:
    whole = np.floor_divide(x, np.where(y == 0, 1, y).astype(y.dtype))
    if x.dtype.kind == "i":
        whole = whole + ((whole * y != x) & ((x < 0) != (y < 0)))
    return np.where(y == 0, ~np.zeros_like(x), whole).astype(x.dtype)


_INTEGERS: dict[str, Callable[..., Array]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "mad": lambda x, y, z: x * y + z,
    "div": _quotient,
    "rem": lambda x, y: np.where(y == 0, x, x - _quotient(x, y) * y).astype(x.dtype),
    "min": np.minimum,
    "max": np.maximum,
    "abs": np.abs,
    "neg": np.negative,
    "sad": lambda x, y, z: np.where(x > y, x - y, y - x) + z,
}


def _extreme(modifiers: list[str], x: Array, y: Array, is_greatest: bool) -> Array:
    """The smaller or greater number; -0 is less than +0; NaN only where asked for, or where both are."""
    number, nan = (np.fmax, np.maximum) if is_greatest else (np.fmin, np.minimum)
    sign = np.signbit(x) ^ np.signbit(y) if "xorsign" in modifiers else None
    if "abs" in modifiers:
        x, y = np.abs(x), np.abs(y)
    chosen = (nan if "NaN" in modifiers else number)(x, y)
    zeros = (x == 0) & (y == 0)
    chosen = np.where(zeros, x + y if is_greatest else -(-x - y), chosen)
    return chosen if sign is None else np.where(sign, -chosen, chosen)


def _in_float64(function: Callable[[Array], Array]) -> Callable[[Array], Array]:
    return lambda x: function(x.astype(np.float64)).astype(x.dtype)


_FUNCTIONS: dict[str, Callable[[Array], Array]] = {
    "ex2": lambda x: exp2_flushed(x) if x.dtype == np.float32 else np.exp2(x),
    "lg2": _in_float64(np.log2),
    "sin": _in_float64(np.sin),
    "cos": _in_float64(np.cos),
    "tanh": _in_float64(np.tanh),
    "rsqrt": _in_float64(lambda x: 1 / np.sqrt(x)),
}


def _float(name: str, opcode: str, modifiers: list[str], kind: NumberType, operands: tuple[Array, ...]) -> Array:
    if "ftz" in modifiers:
        operands = tuple(flushed(operand) for operand in operands)
    mode = next((MODES[modifier] for modifier in modifiers if modifier in MODES), "rn")
    if opcode in ("min", "max"):
        result = _extreme(modifiers, operands[0], operands[1], opcode == "max")
        if len(operands) > 2:
            result = _extreme(modifiers, result, operands[2], opcode == "max")
        return result
    if opcode in ("abs", "neg"):
        return np.abs(operands[0]) if opcode == "abs" else -operands[0]
    if opcode == "copysign":
        return np.copysign(operands[1], operands[0])
    if opcode in _FUNCTIONS:
        result = kind.finished(_FUNCTIONS[opcode](operands[0]))
    elif opcode in ("add", "sub", "mul", "div", "fma", "mad", "sqrt", "rcp"):
        result = _rounded_once("fma" if opcode == "mad" else opcode, mode, kind, operands)
    else:
        raise unsupported(name)
    if "ftz" in modifiers:
        result = flushed(result)
    if "sat" in modifiers:
        return np.where(np.isnan(result), 0, np.clip(result, 0, 1)).astype(result.dtype)
    return np.maximum(result, 0) if "relu" in modifiers else result


def _rounded_once(opcode: str, mode: str, kind: NumberType, operands: tuple[Array, ...]) -> Array:
    if kind.name in ("fp16", "bf16") and opcode == "fma":
        # The product is exact in float64, and so is the sum, apart from what rounding to odd keeps.
        wide = operate("fma", "rn", *(operand.astype(np.float64) for operand in operands))
        return kind.finished(wide)
    return kind.finished(operate(opcode, mode, *operands))
