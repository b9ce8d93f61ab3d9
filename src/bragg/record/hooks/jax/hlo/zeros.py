"""How much of a value of an HLO module is zero, as its form tells: one-hot rows, identities, what is put into zeros."""

from __future__ import annotations

import re

from bragg.record.hooks.jax.hlo.module import DIMENSIONS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from bragg.record.hooks.jax.hlo.graph import Value


_ONE_SIDE = re.compile(r"direction=[GL][ET]")
_NUMBERED = re.compile(r"iota_dimension=(\d+)")
_HANDED_ON = frozenset({"broadcast", "negate"})


def nonzero_part(value: Value) -> float:
    """At most this share of its elements is not zero, or true."""
    value = value.known
    while value.made.code in _HANDED_ON and value.operands:
        value = value.operands[0].known
    code, operands = value.made.code, value.operands
    if code == "constant":
        return 0.0 if value.is_number("0") else 1.0
    if code in ("add", "subtract"):
        return min(1.0, sum(map(nonzero_part, operands)))
    if code == "compare":
        return _equal_part(value)
    if code == "select" and len(operands) == 3 and operands[2].is_number("0"):
        return nonzero_part(operands[0])
    if code in ("multiply", "and"):
        return min(map(nonzero_part, operands))
    if code == "reduce" and value.codes.endswith("add"):
        return min(1.0, nonzero_part(operands[0]) * operands[0].size / max(1, value.size))
    if code == "scatter" and len(operands) == 3:
        return min(1.0, nonzero_part(operands[0]) + operands[2].size / max(1, value.size))
    return 1.0


def is_identity(value: Value) -> bool:
    """Whether it is true where numbers of rows are those of columns."""
    return _compares_places(value) and "direction=EQ" in value.plain.made.line


def is_triangle(value: Value) -> bool:
    """Whether it is true on one side of the diagonal."""
    return _compares_places(value) and bool(_ONE_SIDE.search(value.plain.made.line))


def _compares_places(value: Value) -> bool:
    value = value.plain
    numbers = [_numbering(each) for each in value.operands] if value.made.code == "compare" else [None]
    return None not in numbers and numbers[0] != numbers[1]


def _equal_part(value: Value) -> float:
    """Of a comparison with numbers along a dimension: each of what is compared along it is equal to one at most."""
    if "direction=EQ" not in value.made.line or len(value.operands) != 2:
        return 1.0
    parts = [1.0]
    for numbers, other in (value.operands, value.operands[::-1]):
        along = _numbering(numbers)
        if along is not None and along < len(value.sizes) and not _changes_along(other, along):
            parts.append(1 / max(1, value.sizes[along]))
    return min(parts)


def _changes_along(value: Value, dimension: int) -> bool:
    """Whether elements may differ along a dimension."""
    while value.made.code == "convert" and value.operands:
        value = value.operands[0]
    numbered = _numbering(value)
    if numbered is not None:
        return numbered == dimension
    if value.made.code != "broadcast":
        return value.made.code != "constant" or bool(value.sizes)
    found = DIMENSIONS.search(value.made.line)
    return found is None or str(dimension) in found[1].split(",")


def _numbering(value: Value) -> int | None:
    """Which dimension's numbers it holds; None: it is something else."""
    while value.made.code in ("broadcast", "convert", "add") and value.operands:
        if value.made.code == "broadcast" and _is_numbers(value.operands[0]):
            found = DIMENSIONS.search(value.made.line)
            return int(found[1]) if found and found[1].isdecimal() else None
        value = value.operands[0]
    found = _NUMBERED.search(value.made.line) if value.made.code == "iota" else None
    return int(found[1]) if found else None


def _is_numbers(value: Value) -> bool:
    """Whether it is a row of numbers, which may begin elsewhere."""
    while value.made.code in ("add", "convert") and value.operands:
        value = value.operands[0]
    return value.made.code == "iota" and "," not in value.shape
