"""What the checkers found: one entry for each place, tensor and kind, with the first witness and counts."""

from __future__ import annotations

import linecache
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

from bragg.debug.host.compiled_lines import origins
from bragg.debug.memory.storage import Buffer
from bragg.debug.verdicts import Verdicts
from bragg.model import Finding, Severity

__all__ = ["KernelFinding", "Report", "TensorFacts", "Witness", "program_ids"]

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
    """

    program: tuple[int, int, int]
    lane: int = 0
    offset: int | None = None
    index: tuple[int, ...] | None = None


@dataclass
class KernelFinding:
    """One thing that is wrong with a kernel.

    Attributes:
        rule: Name of the checker.
        severity: How much it matters.
        kernel: Name of the kernel.
        file: Where the line is.
        line: The line.
        code: Its text.
        message: What is wrong.
        hint: What to do about it.
        tensor: The tensor involved, if one is.
        address: Expression of the address, from the source.
        mask: Expression of the mask; empty: none.
        witness: The first lane that shows it.
        grid: Programs along the three axes of the first launch that shows it.
        programs: Linear numbers of the programs that show it.
        lanes: How many lanes show it, over all of them.
        positions: Where in the block these lanes are.
        other: `file`, `line` and `code` of the other side of a conflict and its `program`, or of where a value is used;
            `role` says what that line is.
        example: What one element shows; empty: nothing to tell.
        origins: Lines of the program that a generated line comes from, as `file:line: code`.
        is_in_other_grids: Launches with other grids show it too; their programs and lanes are not counted.
    """

    rule: str
    severity: Severity
    kernel: str
    file: str
    line: int
    message: str
    hint: str = ""
    code: str = ""
    tensor: TensorFacts | None = None
    address: str = ""
    mask: str = ""
    witness: Witness | None = None
    grid: tuple[int, int, int] = (1, 1, 1)
    programs: set[int] = field(default_factory=set)
    lanes: int = 0
    positions: set[int] = field(default_factory=set)
    other: dict[str, Any] | None = None
    is_in_other_grids: bool = False
    example: str = ""
    origins: list[str] = field(default_factory=list)

    def to_finding(self) -> Finding:
        """The finding as profiles hold it."""
        return Finding(
            self.rule, self.severity, self.message, self.hint, kernel=self.kernel, file=self.file, line=self.line
        )

    def to_json(self) -> dict[str, Any]:
        """The finding as JSON values."""
        shown = asdict(self)
        shown["severity"] = self.severity.name.lower()
        shown["programs"] = {"count": len(self.programs), "first": sorted(self.programs)[:100]}
        shown["positions"] = _ranges(self.positions)
        return shown

    def lines(self) -> list[str]:
        """The finding as text."""
        lines = [f"{self.severity.name.lower()}: {self.rule} in {self.kernel} ({self.file}:{self.line})"]
        if self.code:
            lines.append(f"    {self.code}")
        lines.extend(f"  from: {place}" for place in self.origins)
        lines.append(f"  {self.message}")
        if self.programs:
            lines.append(f"  where: {self._where()}")
        if self.tensor:
            lines.append(f"  tensor: {self.tensor}")
        if self.address:
            lines.append(f"  address: {self.address}; mask: {self.mask or 'none'}")
        if self.example:
            lines.append(f"  example: {self.example}")
        if self.other:
            lines.append(_other(self.other))
        if self.hint:
            lines.append(f"  fix: {self.hint}")
        return lines

    def _where(self) -> str:
        total = self.grid[0] * self.grid[1] * self.grid[2]
        numbers = sorted(self.programs)
        shown = ", ".join(_program_text(number, self.grid) for number in numbers[:_SHOWN_PROGRAMS])
        more = " …" if len(numbers) > _SHOWN_PROGRAMS else ""
        ranges = _ranges(self.positions)
        lanes = ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in ranges[:_SHOWN_PROGRAMS])
        lanes += " …" if len(ranges) > _SHOWN_PROGRAMS else ""
        text = f"programs {shown}{more} ({len(numbers)} of {total}), lanes {lanes} ({self.lanes} in all)"
        if self.witness and self.witness.offset is not None:
            at = "" if self.witness.index is None else f" = index {list(self.witness.index)}"
            text += (
                f"; first: program {self.witness.program}, lane {self.witness.lane}, offset {self.witness.offset}{at}"
            )
        return f"{text}; and in launches with other grids" if self.is_in_other_grids else text


def _ranges(numbers: set[int]) -> list[tuple[int, int]]:
    """First and last number of each run of consecutive numbers."""
    found: list[tuple[int, int]] = []
    for number in sorted(numbers):
        if found and number == found[-1][1] + 1:
            found[-1] = (found[-1][0], number)
        else:
            found.append((number, number))
    return found


def _other(other: dict[str, Any]) -> str:
    place = f"{other['file']}:{other['line']}: {other['code']}"
    if "program" not in other:
        return f"  {other.get('role', 'used at')}: {place}"
    why = f"\n  not ordered: {other['why']}" if other.get("why") else ""
    return f"  other side: program {other['program']} at {place}{why}"


def program_ids(number: int, grid: tuple[int, int, int]) -> tuple[int, int, int]:
    """Ids along the three axes of a linear number."""
    x, y, _ = grid
    return number % x, number // x % y, number // (x * y)


def _program_text(number: int, grid: tuple[int, int, int]) -> str:
    ids = program_ids(number, grid)
    return str(ids[0]) if grid[1] == grid[2] == 1 else str(ids)


class Report:
    """The findings of a session, grouped.

    Args:
        tell: Is told of each new finding, while the kernel is at its line.
    """

    def __init__(self, tell: Callable[[KernelFinding], None] | None = None) -> None:
        self._tell = tell
        self._found: dict[tuple[Any, ...], KernelFinding] = {}
        self.launches = 0
        self.programs = 0
        self.additions = 0
        self.refused: Counter[str] = Counter()
        self.verdicts = Verdicts()
        self._judgements: dict[tuple[Any, ...], Callable[[], None]] = {}

    @property
    def findings(self) -> list[KernelFinding]:
        """The gravest first, else in the order in which they were found."""
        return sorted(self._found.values(), key=lambda finding: -finding.severity)

    def __iter__(self) -> Iterator[KernelFinding]:
        return iter(self.findings)

    def __len__(self) -> int:
        return len(self._found)

    def add(
        self,
        finding: KernelFinding,
        key: tuple[Any, ...],
        programs: Iterable[int],
        lanes: int,
        positions: Iterable[int] = (),
    ) -> None:
        """Add lanes to the finding of a place, which is made at its first lane.

        Args:
            finding: What is known if it is the first one.
            key: What makes two findings one.
            programs: Linear numbers of the programs that show it.
            lanes: How many lanes, over all of these programs.
            positions: Where in their blocks these are.
        """
        self.additions += 1
        known = self._found.get(key)
        if known is None:
            finding.code = linecache.getline(finding.file, finding.line).strip()
            finding.origins = origins(finding.file, finding.line)
            known = self._found[key] = finding
        is_new = known is finding
        if finding.grid == known.grid:
            known.programs.update(programs)
            known.positions.update(positions)
            known.lanes += lanes
        else:
            known.is_in_other_grids = True
        if is_new and self._tell is not None:
            self._tell(known)

    def judge_at_end(self, key: tuple[Any, ...], judge: Callable[[], None]) -> None:
        """Keep what only the end of the program can tell; the first of those with one key."""
        self._judgements.setdefault(key, judge)

    def judge(self) -> None:
        """The program has ended."""
        while self._judgements:
            self._judgements.pop(next(iter(self._judgements)))()

    def refuse(self, reason: str) -> None:
        """Something was not executed, whatever the program makes of it."""
        self.refused[reason] += 1

    def contents(self) -> tuple[int, int, Verdicts, dict[tuple[Any, ...], KernelFinding], Counter[str]]:
        """Launches, programs, verdicts, findings by what makes two of them one, refusals: what another absorbs."""
        return self.launches, self.programs, self.verdicts, self._found, self.refused

    def clear(self) -> None:
        """Begin anew."""
        self._found.clear()
        self._judgements.clear()
        self.refused.clear()
        self.verdicts.counts.clear()
        self.launches = self.programs = 0

    def absorb(
        self,
        launches: int,
        programs: int,
        verdicts: Verdicts,
        found: dict[tuple[Any, ...], KernelFinding],
        refused: Counter[str],
    ) -> None:
        """Add what another process has found."""
        self.refused.update(refused)
        self.verdicts.counts.update(verdicts.counts)
        self.launches += launches
        self.programs += programs
        for key, finding in found.items():
            self.add(finding, key, finding.programs, finding.lanes if key in self._found else 0, finding.positions)

    def lines(self) -> list[str]:
        """All findings as text, verdicts, and a summary."""
        refused = [f"not executed: {reason}" for reason in self.refused]
        return [*self.finding_lines(), *self.verdicts.lines(), *refused, self.summary()]

    def finding_lines(self) -> list[str]:
        """All findings as text."""
        blocks = [[*finding.lines(), ""] for finding in self.findings]
        return [line for block in blocks for line in block]

    def summary(self) -> str:
        """One line."""
        if not self.launches and not self._found and not self.refused:
            return "no launches"
        counts = {severity: sum(f.severity is severity for f in self.findings) for severity in reversed(Severity)}
        found = ", ".join(_counted(count, severity.name.lower()) for severity, count in counts.items() if count)
        launches, programs = _counted(self.launches, "launch", "es"), _counted(self.programs, "program")
        more = f"; {_counted(self.refused.total(), 'launch', 'es')} not executed" if self.refused else ""
        return f"{found or 'no findings'} in {launches} of {programs}{more}"

    def to_json(self) -> dict[str, Any]:
        """All findings as JSON values."""
        return {
            "launches": self.launches,
            "programs": self.programs,
            "verdicts": self.verdicts.to_json(),
            "not_executed": [{"because": reason, "launches": count} for reason, count in self.refused.items()],
            "findings": [finding.to_json() for finding in self.findings],
        }


def _counted(count: int, noun: str, ending: str = "s") -> str:
    return f"{count} {noun}{ending if count != 1 else ''}"
