"""What is wrong with a kernel: one finding for each place, tensor and kind, with the first witness and counts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

from bragg.debug.memory.storage import Buffer
from bragg.model import Confidence, Finding, Severity

_SHOWN_PROGRAMS = 5


@dataclass(frozen=True)
class TensorFacts:
    """A tensor argument: name of the parameter, type, shape, strides in elements."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    @classmethod
    def of(cls, buffer: Buffer) -> TensorFacts:
        """The facts of a buffer."""
        shape, strides = tuple(map(int, buffer.shape)), tuple(map(int, buffer.strides))
        return cls(buffer.name, buffer.dtype.name, shape, strides)

    def __str__(self) -> str:
        return f"{self.name} ({self.dtype}{list(self.shape)}, strides {list(self.strides)})"


@dataclass(frozen=True)
class Witness:
    """The first lane that shows it.

    Attributes:
        program: Ids along the three axes of the grid.
        lane: Flat position in the block.
        offset: Of the element, from the tensor's first one; None when no element is involved.
        index: The same as an index of the tensor.
        turn: What the names of the loops around hold; empty: there are no loops.
    """

    program: tuple[int, int, int]
    lane: int = 0
    offset: int | None = None
    index: tuple[int, ...] | None = None
    turn: str = ""


# What a finding of a profile says and one of a kernel does not.
_OF_PROFILES = ("node", "evidence", "places", "gain", "confidence", "details")


@dataclass(frozen=True)
class KernelFinding(Finding):
    """One thing that is wrong with a kernel.

    Attributes:
        code: Text of the line.
        tensor: The tensor involved, if one is.
        address: Expression of the address, from the source.
        mask: Expression of the mask; empty: none.
        witness: The first lane that shows it.
        grid: Programs along the three axes of the first launch that shows it.
        programs: Linear numbers of the programs that show it.
        lanes: How many lanes show it, over all of them.
        positions: Where in the block these lanes are.
        source_positions: Where in the block of this line the lanes are whose values another line uses in others.
        other: `file`, `line` and `code` of the other side of a conflict and its `program`, or of where a value is used;
            `role` says what that line is.
        example: What one element shows; empty: nothing to tell.
        origins: Lines of the program that a generated line comes from, as `file:line: code`.
        is_early: In another order of the programs there is something to read; None: that is not known.
        is_in_other_grids: Launches with other grids show it too; their programs and lanes are not counted.
    """

    code: str = ""
    tensor: TensorFacts | None = None
    address: str = ""
    mask: str = ""
    witness: Witness | None = None
    grid: tuple[int, int, int] = (1, 1, 1)
    programs: set[int] = field(default_factory=set)
    lanes: int = 0
    positions: set[int] = field(default_factory=set)
    source_positions: set[int] = field(default_factory=set)
    other: dict[str, Any] | None = None
    is_early: bool | None = None
    is_in_other_grids: bool = False
    example: str = ""
    origins: list[str] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        """The finding as JSON values."""
        shown = {name: value for name, value in asdict(self).items() if name not in _OF_PROFILES}
        shown["severity"] = self.severity.name.lower()
        shown["programs"] = {"count": len(self.programs), "first": sorted(self.programs)[:100]}
        shown["positions"] = _ranges(self.positions)
        shown["source_positions"] = _ranges(self.source_positions)
        return shown

    def to_finding(self) -> Finding:
        """What a profile keeps of it; a launch has shown it."""
        values = {each.name: getattr(self, each.name) for each in fields(Finding)}
        return Finding(**{**values, "confidence": Confidence.PROVEN, "details": tuple(self._details())})

    def lines(self) -> list[str]:
        """The finding as text."""
        lines = [f"{self.severity.name.lower()}: {self.rule} in {self.kernel} ({self.file}:{self.line})"]
        if self.code:
            lines.append(f"    {self.code}")
        lines.extend(f"  from: {place}" for place in self.origins)
        lines.append(f"  {self.message}")
        lines.extend(f"  {name}: {text}" for name, text in self._details())
        if self.hint:
            lines.append(f"  fix: {self.hint}")
        return lines

    def _details(self) -> Iterator[tuple[str, str]]:
        """What is known beside the message, with what it is."""
        if self.programs:
            yield "where", self._where()
        if self.tensor:
            yield "tensor", str(self.tensor)
        if self.address:
            yield "address", f"{self.address}; mask: {self.mask or 'none'}"
        if self.example:
            yield "example", self.example
        if self.other:
            yield from _other(self.other)

    def _where(self) -> str:
        total = self.grid[0] * self.grid[1] * self.grid[2]
        numbers = sorted(self.programs)
        shown = ", ".join(_program_text(number, self.grid) for number in numbers[:_SHOWN_PROGRAMS])
        more = " …" if len(numbers) > _SHOWN_PROGRAMS else ""
        lanes = f"lanes {_lanes_text(self.positions)}"
        if self.source_positions and self.source_positions != self.positions:
            lanes = f"lanes {_lanes_text(self.source_positions)}, used in {lanes}"
        is_repeated = self.lanes > len(numbers) * len(self.positions)
        count = f"seen {self.lanes} times" if is_repeated else f"{self.lanes} in all"
        text = f"programs {shown}{more} ({len(numbers)} of {total}), {lanes} ({count})"
        if self.witness and self.witness.offset is not None:
            at = "" if self.witness.index is None else f" = index {list(self.witness.index)}"
            first = f"program {self.witness.program}, lane {self.witness.lane}, offset {self.witness.offset}{at}"
            text += f"; first: {first}{f', {self.witness.turn}' if self.witness.turn else ''}"
        return f"{text}; and in launches with other grids" if self.is_in_other_grids else text


def causes_first(found: Sequence[KernelFinding]) -> list[KernelFinding]:
    """The gravest first, else as they were found; a race after the access past the end of a row that makes it."""
    spill_of = {id(one): spill for one in found if (spill := _spill_behind(one, found)) is not None}
    weight = {id(spill_of[id(race)]): race.severity for race in found if id(race) in spill_of}

    def rank(one: KernelFinding) -> tuple[int, int]:
        if id(one) in weight:
            return -weight[id(one)], 1
        return -one.severity, 2 if id(one) in spill_of else 0

    ordered = sorted(found, key=rank)
    return [replace(one, hint=_hint(spill_of[id(one)])) if id(one) in spill_of else one for one in ordered]


def _spill_behind(race: KernelFinding, found: Sequence[KernelFinding]) -> KernelFinding | None:
    """The access past the end of a row that is one side of a race in every pair; None: the race has another cause."""
    if race.rule != "data-race":
        return None
    place = (race.kernel, race.file, race.line, race.tensor)
    spills = (one for one in found if one.rule == "out-of-bounds" and one.severity is Severity.WARNING)
    same = (one for one in spills if (one.kernel, one.file, one.line, one.tensor) == place)
    return next((one for one in same if is_by_lanes_of(race, one)), None)


def is_by_lanes_of(race: KernelFinding, outside: KernelFinding) -> bool:
    """One side of a race may be lanes that are outside, or of an axis beyond its extent, in every pair.

    What is known of a pair are the lanes of the side that came later, and both programs.
    """
    if 2 * len(race.positions & outside.positions) >= len(race.positions):
        return True
    is_one_line = (race.other or {}).get("line") == race.line
    return is_one_line and outside.programs <= race.programs and race.lanes <= outside.lanes


def _hint(spill: KernelFinding) -> str:
    return f"First mend the access past the end of a row in line {spill.line}: this race follows from it"


def _lanes_text(numbers: set[int]) -> str:
    ranges = _ranges(numbers)
    more = " …" if len(ranges) > _SHOWN_PROGRAMS else ""
    return ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in ranges[:_SHOWN_PROGRAMS]) + more


def _ranges(numbers: set[int]) -> list[tuple[int, int]]:
    """First and last number of each run of consecutive numbers."""
    found: list[tuple[int, int]] = []
    for number in sorted(numbers):
        if found and number == found[-1][1] + 1:
            found[-1] = (found[-1][0], number)
        else:
            found.append((number, number))
    return found


def _other(other: dict[str, Any]) -> Iterator[tuple[str, str]]:
    ids, place = other.get("program"), f"{other['file']}:{other['line']}: {other['code']}"
    if ids is None:
        yield other.get("role", "used at"), place
    else:
        yield "other side", f"{'several programs' if isinstance(ids, str) else f'program {tuple(ids)}'} at {place}"
    if other.get("why"):
        yield "not ordered", other["why"]


def program_ids(number: int, grid: tuple[int, int, int]) -> tuple[int, int, int]:
    """Ids along the three axes of a linear number."""
    x, y, _ = grid
    return number % x, number // x % y, number // (x * y)


def _program_text(number: int, grid: tuple[int, int, int]) -> str:
    ids = program_ids(number, grid)
    return str(ids[0]) if grid[1] == grid[2] == 1 else str(ids)
