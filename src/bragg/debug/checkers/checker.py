"""What a checker is."""

from __future__ import annotations

import ast
import linecache
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from bragg.debug.expressions import AccessText, access_text, loop_names, number_of
from bragg.debug.findings import KernelFinding, TensorFacts, Witness, program_ids
from bragg.debug.flow.place import kernel_line, kernel_names
from bragg.debug.host.launch import Launch
from bragg.debug.memory.access import Access
from bragg.debug.memory.addresses import is_nowhere
from bragg.debug.memory.storage import Buffer
from bragg.debug.report import Report
from bragg.debug.state import Listeners, machine
from bragg.model import Severity
from bragg.model.table import Array


@dataclass(frozen=True)
class Source:
    """A line that values are from.

    Attributes:
        file: Of the line.
        line: The line.
        tensor: That is accessed there, if one is.
        text: What the source says of the access.
        lanes: Gives bool, [programs or 1, *block]: the lanes of the access that it is about; None: they are not known.
    """

    file: str
    line: int
    tensor: TensorFacts | None = None
    text: AccessText = field(default_factory=AccessText)
    lanes: Callable[[], Array] | None = None

    @property
    def place(self) -> tuple[str, int]:
        """File and line."""
        return self.file, self.line


@dataclass(slots=True, eq=False)
class LaunchFindings:
    """Takes what one checker finds in one launch.

    Attributes:
        rule: Name of the checker.
        launch: The launch.
        report: Where findings go.
        watching: Names of all checkers that watch the launch.
    """

    rule: str
    launch: Launch
    report: Report
    watching: frozenset[str] = frozenset()

    def at_access(
        self,
        access: Access,
        programs: Array,
        lanes: Array,
        offsets: Array,
        message: str,
        hint: str | Callable[[], str],
        severity: Severity = Severity.ERROR,
        other: dict[str, Any] | None = None,
        rivals: Array | None = None,
        group: tuple[Any, ...] | None = None,
    ) -> None:
        """Lanes of a memory access show something.

        Args:
            access: The access.
            programs: int64 [lanes]: linear number of each lane's program.
            lanes: int64 [lanes]: position of each lane in its block.
            offsets: int64 [lanes]: element offset of each lane.
            message: What is wrong.
            hint: What to do about it, or what finds it out.
            severity: How much it matters.
            other: The other side of a conflict.
            rivals: Linear numbers of the programs on that side.
            group: What makes two findings of the rule and the kernel one; None: line, tensor and message.
        """
        file, line = kernel_line()
        group = group or (file, line, access.buffer.name, message)
        if self.repeats(group, programs, lanes, rivals):
            return
        text = access_text(file, line, access.kind, access.buffer.name)
        offset = int(offsets[0])
        first = program_ids(int(programs[0]), self.launch.grid)
        shown: dict[str, Any]
        if is_nowhere(access.buffer):
            address = access.buffer.address + offset * access.dtype.size_bytes
            example = f"program {first}, lane {int(lanes[0])}: address {address:#x}"
            shown = {"witness": Witness(first, int(lanes[0])), "example": example}
        else:
            turn = _turn(file, line, int(programs[0]))
            witness = Witness(first, int(lanes[0]), offset, _index(access.buffer, offset), turn)
            shown = {"witness": witness, "tensor": TensorFacts.of(access.buffer)}
        shown |= {"address": text.address, "mask": text.mask, "other": other}
        fix = hint if isinstance(hint, str) else hint()
        finding = self._finding(file, line, message, fix, severity, **shown)
        self.report.add(finding, *self._involved(group, programs, lanes, rivals))

    def repeats(self, group: tuple[Any, ...], programs: Array, lanes: Array, rivals: Array | None = None) -> bool:
        """A finding of the group is known, and gets these lanes too, int [n]; arguments are those of `at_access`."""
        key, involved, count, positions = self._involved(group, programs, lanes, rivals)
        return self.report.extend(key, self.launch.grid, involved, count, positions)

    def _involved(
        self, group: tuple[Any, ...], programs: Array, lanes: Array, rivals: Array | None
    ) -> tuple[tuple[Any, ...], list[int], int, list[int]]:
        involved = programs if rivals is None else np.concatenate([programs, rivals])
        key = self.rule, self.launch.kernel, *group
        return key, np.unique(involved).tolist(), len(programs), np.unique(lanes).tolist()

    def at_line(
        self,
        message: str,
        hint: str,
        severity: Severity,
        where: Array | None = None,
        source: Source | None = None,
        started_at: tuple[str, int] | None = None,
        role: str = "started at",
        why: str = "",
        held: list[Callable[[], None]] | None = None,
    ) -> None:
        """An operation shows something.

        Args:
            message: What is wrong.
            hint: What to do about it.
            severity: How much it matters.
            where: bool, [active programs or 1, *block]: the lanes that show it; None: all programs.
            source: The line to blame; None: the one that is executed.
            started_at: Where what it meets was started; None: nowhere else.
            role: What that line is.
            why: What an order of the two lines lacks; empty: they need none.
            held: Gets what adds the finding to the report, later; None: it is added now.
        """
        here = kernel_line()
        source = source or Source(*here)
        active = machine().active_programs
        rows = np.ones((1, 1), bool) if where is None else where.reshape(len(where), -1)
        rows = np.broadcast_to(rows, (len(active), rows.shape[1]))
        programs, lanes = active[rows.any(axis=1)], np.flatnonzero(rows.any(axis=0))
        shown: dict[str, Any] = {"tensor": source.tensor, "address": source.text.address, "mask": source.text.mask}
        if len(programs):
            first = int(np.flatnonzero(rows[np.searchsorted(active, programs[0])])[0])
            shown["witness"] = Witness(program_ids(int(programs[0]), self.launch.grid), first)
        if source.place != here:
            shown["other"] = _line(*here)
            shown["source_positions"] = _positions(source)
        elif started_at is not None:
            shown["other"] = {**_line(*started_at), "role": role, **({"why": why} if why else {})}
        finding = self._finding(source.file, source.line, message, hint, severity, **shown)
        name = source.tensor.name if source.tensor else ""
        key = (self.rule, self.launch.kernel, source.file, source.line, name, message)
        add = partial(self.report.add, finding, key, programs.tolist(), int(rows.sum()), lanes.tolist())
        if held is None:
            add()
        else:
            held.append(add)

    def at_source(
        self,
        file: str,
        line: int,
        message: str,
        hint: str,
        severity: Severity,
        buffer: Buffer | None = None,
        example: str = "",
        used_at: tuple[str, int] | None = None,
        role: str = "used at",
        text: AccessText | None = None,
    ) -> None:
        """A line shows something that no single program does.

        Args:
            file: Of the line.
            line: The line.
            message: What is wrong.
            hint: What to do about it.
            severity: How much it matters.
            buffer: The tensor it is about, if one is.
            example: What one element shows.
            used_at: Where what the line makes does harm; None: there.
            role: What that line is.
            text: What the source says of the access at the line; None: it is about no access.
        """
        tensor = TensorFacts.of(buffer) if buffer else None
        other = {**_line(*used_at), "role": role} if used_at is not None and used_at != (file, line) else None
        shown: dict[str, Any] = {"address": text.address, "mask": text.mask} if text else {}
        shown |= {"tensor": tensor, "example": example, "other": other}
        finding = self._finding(file, line, message, hint, severity, **shown)
        self.report.add(finding, (self.rule, self.launch.kernel, file, line, message), (), 0)

    def settle_order(self, place: tuple[str, int], tensor: str, hint: str, *, is_early: bool) -> None:
        """Say of what the rule has found at a line, of a tensor, whether it comes early, and what to do about it."""
        self.report.settle_order((self.rule, self.launch.kernel, *place, tensor), hint, is_early=is_early)

    def _finding(
        self, file: str, line: int, message: str, hint: str, severity: Severity, **shown: Any
    ) -> KernelFinding:
        place: dict[str, Any] = {"kernel": self.launch.kernel, "file": file, "line": line, "grid": self.launch.grid}
        return KernelFinding(self.rule, severity, message, hint, **place, **shown)


def _positions(source: Source) -> set[int]:
    if source.lanes is None:
        return set()
    lanes = source.lanes()
    return set(np.flatnonzero(lanes.any(axis=0)).tolist())


def _line(file: str, line: int) -> dict[str, Any]:
    return {"file": file, "line": line, "code": linecache.getline(file, line).strip()}


def _turn(file: str, line: int, program: int) -> str:
    """What the names of the loops around a line hold for a program: `k = 1`; empty: there are no loops."""
    row, names = int(np.searchsorted(machine().active_programs, program)), kernel_names()
    held = {name: number_of(ast.Name(name), names, row) for name in loop_names(file, line)}
    return ", ".join(f"{name} = {number}" for name, number in held.items() if number is not None)


def _index(buffer: Buffer, offset: int) -> tuple[int, ...] | None:
    return buffer.index(offset) if len(buffer.shape) > 1 else None


@dataclass(frozen=True)
class Checker:
    """A plug-in that watches launches.

    Attributes:
        name: Of the rule, as findings and options spell it.
        summary: What it finds, one line.
        is_default: On unless chosen otherwise.
        watch: Gives the listeners of one launch.
    """

    name: str
    summary: str
    is_default: bool
    watch: Callable[[LaunchFindings], Listeners]
