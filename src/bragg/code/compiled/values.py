"""What the values of a tile program depend on, and how addresses grow along the dimensions of a tile."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from bragg.code.compiled.operations import Module, Operation, tile_of

_CONSTANT = re.compile(r"arith\.constant (?:dense<)?(-?\d+|true|false)?")
_AXIS = re.compile(r"axis = (\d+)")
_ORDER = re.compile(r"order = array<i32: ([\d, ]+)>")
_PROGRAM = "program"
# Their results are read from memory, or change from call to call.
_OPAQUE = ("tt.load", "tt.atomic", "tt.descriptor_load", "tt.experimental_descriptor_load", "tt.elementwise_inline_asm")
_SAME = ("arith.extsi", "arith.extui", "arith.trunci", "arith.index_cast", "tt.bitcast", "ttg.convert_layout")

Stride = tuple[int, tuple[str, ...]] | None
"""A factor and the names that it is multiplied by; None: not known."""

_ZERO: Stride = (0, ())
_MAX_RANK = 8
QUOTIENTS = ("arith.divsi", "arith.divui", "arith.ceildivsi")
REMAINDERS = ("arith.remsi", "arith.remui")
_WRITTEN = {"arith.divsi": "//", "arith.divui": "//", "arith.remsi": "%", "arith.remui": "%"}
"""Scalars that strides may be multiples of, whatever they are."""


@dataclass(frozen=True)
class Value:
    """One value.

    Attributes:
        strides: How it grows along each dimension of a tile; of a scalar empty.
        uniform: What all its elements are, as a factor and names; None: they differ, or it is not known.
        names: Arguments that it depends on; `program`: on the number of the program.
        turns: Loops whose turns it differs in, counted from the outermost; 0: it is the same in all turns.
        is_constant: Whether it is written in the code.
    """

    strides: tuple[Stride, ...] = ()
    uniform: Stride = None
    names: frozenset[str] = frozenset()
    turns: int = 0
    is_constant: bool = False

    @property
    def stride_texts(self) -> tuple[str | None, ...]:
        """As they are written: `1`, `stride`, `64*n`."""
        return tuple(None if stride is None else _text(*stride) for stride in self.strides)

    @property
    def is_per_program(self) -> bool:
        """Whether it depends on the number of the program."""
        return _PROGRAM in self.names


UNKNOWN = Value((None,) * _MAX_RANK)
"""A value of which nothing is known, of whatever rank."""


def _text(factor: int, names: tuple[str, ...]) -> str:
    parts = ([str(factor)] if factor != 1 or not names else []) + list(names)
    return "0" if factor == 0 else "*".join(parts)


def values_of(module: Module, *, of_most: bool = False) -> dict[str, Value]:
    """Values of a module of TTIR by name, in the state after its last operation.

    Args:
        module: It.
        of_most: Let strides be those between most neighbours: quotients stay as they are, and remainders grow. Else
            strides of both are not known.
    """
    values = {
        f"%{argument.name}": Value((), (1, (argument.name,)), frozenset({argument.name}))
        for argument in module.arguments
    }
    for operation in module.operations:
        for inside, outside in operation.block.items():
            start = values.get(outside, UNKNOWN)
            values[inside] = Value(start.strides, None, start.names, operation.depth + 1)
        operands = [values.get(name, UNKNOWN) for name in operation.operands]
        value = (_value_of_most(operation, operands) if of_most else None) or _value(operation, operands)
        for name in operation.results:
            values[name] = value
    return values


def _value(operation: Operation, operands: list[Value]) -> Value:
    types = operation.text.rpartition(" : ")[2]
    tile = tile_of(types.rpartition("-> ")[2])
    rank = len(tile.shape) if tile else 0
    names = frozenset().union(*(operand.names for operand in operands))
    turns = max((operand.turns for operand in operands), default=0)
    unknown = Value((None,) * rank, None, names, turns)
    name = operation.name
    if name.startswith("scf."):
        return replace(UNKNOWN, names=names, turns=operation.depth)
    if name == "arith.constant":
        return _constant(operation, rank)
    if name == "tt.get_program_id":
        return Value((), (1, (operation.results[0].strip(),)), frozenset({_PROGRAM}))
    if name == "tt.make_range":
        return Value(((1, ()),))
    if name.startswith(_OPAQUE):
        return Value((None,) * rank, None, names, max(turns, operation.depth))
    if name in _SAME and operands:
        return Value(operands[0].strides, operands[0].uniform, names, turns, operands[0].is_constant)
    if name == "tt.splat" and operands:
        return Value((_ZERO,) * rank, operands[0].uniform, names, turns, operands[0].is_constant)
    if not tile and name in _WRITTEN and len(operands) == 2 and None not in (operands[0].uniform, operands[1].uniform):
        left, right = (_text(*operand.uniform) for operand in operands if operand.uniform)
        return Value((), (1, (f"({left} {_WRITTEN[name]} {right})",)), names, turns)
    strides, uniform = _combined(operation, operands, rank)
    return Value(strides, uniform, names, turns) if strides is not None else unknown


def _value_of_most(operation: Operation, operands: list[Value]) -> Value | None:
    """A quotient or a remainder by one value for all elements; None: it is not, or begins anew often in a tile."""
    if operation.name not in (*QUOTIENTS, *REMAINDERS) or len(operands) != 2:
        return None
    left, right = operands
    tile = tile_of(operation.text)
    if not tile or right.uniform is None or (not right.uniform[1] and 2 * right.uniform[0] < tile.elements):
        return None
    strides = left.strides if operation.name in REMAINDERS else (_ZERO,) * len(left.strides)
    return Value(strides, None, left.names | right.names, max(left.turns, right.turns))


def _constant(operation: Operation, rank: int) -> Value:
    match = _CONSTANT.search(operation.text)
    number = int(match[1]) if match and match[1] and match[1][-1].isdigit() else None
    return Value((_ZERO,) * rank, None if number is None else (number, ()), is_constant=True)


def _combined(operation: Operation, operands: list[Value], rank: int) -> tuple[tuple[Stride, ...] | None, Stride]:
    """Strides of the result and what all elements are; no strides: not known."""
    name, first = operation.name, operands[0] if operands else Value()
    if name == "tt.expand_dims" and (axis := _AXIS.search(operation.text)):
        at = int(axis[1])
        return (*first.strides[:at], _ZERO, *first.strides[at:]), first.uniform
    if name == "tt.broadcast":
        return first.strides, first.uniform
    if name == "tt.trans" and (order := _ORDER.search(operation.text)):
        at_each = [int(item) for item in order[1].split(",")]
        return tuple(first.strides[at] if at < len(first.strides) else None for at in at_each), first.uniform
    if len(operands) != 2:
        return None, None
    left, right = operands
    if name in ("arith.addi", "tt.addptr", "arith.subi"):
        sign = -1 if name == "arith.subi" else 1
        return tuple(_sum(_at(left, at), _at(right, at), sign) for at in range(rank)), None
    if name == "arith.muli":
        uniform = _product(left.uniform, right.uniform)
        return tuple(_scaled(left, right, at) for at in range(rank)), uniform
    if all(_at(operand, at) == _ZERO for operand in operands for at in range(rank)):
        return (_ZERO,) * rank, None
    return None, None


def _at(value: Value, at: int) -> Stride:
    """A stride; scalars have none, which is 0."""
    return value.strides[at] if at < len(value.strides) else _ZERO


def _sum(one: Stride, other: Stride, sign: int) -> Stride:
    if one is None or other is None:
        return None
    if one[0] and other[0] and one[1] != other[1]:
        return None
    names = one[1] if one[0] else other[1]
    return one[0] + sign * other[0], names


def _product(one: Stride, other: Stride) -> Stride:
    if one is None or other is None:
        return None
    return one[0] * other[0], tuple(sorted(one[1] + other[1]))


def _scaled(left: Value, right: Value, at: int) -> Stride:
    """A stride of a product: one side must be the same along this dimension."""
    if _at(left, at) == _ZERO:
        left, right = right, left
    if _at(left, at) == _ZERO:
        return _ZERO
    if _at(right, at) != _ZERO:
        return None
    return _product(_at(left, at), right.uniform)
