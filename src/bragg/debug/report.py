"""The findings of a session, with how many launches they come from and what was not executed."""

from __future__ import annotations

import linecache
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import takewhile
from typing import Any

from bragg.debug.findings import KernelFinding, causes_first
from bragg.debug.flow.place import kernel_line
from bragg.debug.host.compiled_lines import origins
from bragg.debug.texts.consequences import grouped, grouped_lines
from bragg.debug.verdicts import Verdicts
from bragg.model import Severity


class Report:
    """The findings of a session, grouped.

    Args:
        tell: Called with each new finding, while the kernel is at its line.

    Attributes:
        without_lanes: How often each kernel was executed once more, without lanes that masks leave out.
    """

    def __init__(self, tell: Callable[[KernelFinding], None] | None = None) -> None:
        self._tell = tell
        self._found: dict[tuple[Any, ...], KernelFinding] = {}
        self.launches = 0
        self.programs = 0
        self.additions = 0
        self.refused: Counter[str] = Counter()
        self.verdicts = Verdicts()
        self.without_lanes: Counter[str] = Counter()
        self._stops: set[str] = set()
        self._judgements: dict[tuple[Any, ...], Callable[[], None]] = {}

    @property
    def is_told_at_once(self) -> bool:
        """Somebody wants findings while the kernel is at their line."""
        return self._tell is not None

    @property
    def findings(self) -> list[KernelFinding]:
        """The gravest first, causes before what follows from them."""
        return causes_first(list(self._found.values()))

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
        if key in self._found:
            self.extend(key, finding.grid, programs, lanes, positions)
            return
        if kernel_line()[1]:
            self._stops.add(finding.rule)
        code = finding.code or linecache.getline(finding.file, finding.line).strip()
        self._found[key] = replace(finding, code=code, origins=origins(finding.file, finding.line))
        self.extend(key, finding.grid, programs, lanes, positions)
        if self._tell is not None:
            self._tell(self._found[key])

    def extend(
        self,
        key: tuple[Any, ...],
        grid: tuple[int, int, int],
        programs: Iterable[int],
        lanes: int,
        positions: Iterable[int] = (),
    ) -> bool:
        """Add lanes of a launch to a finding that is known; False: there is none of this key."""
        known = self._found.get(key)
        if known is None:
            return False
        self.additions += 1
        if grid == known.grid:
            known.programs.update(programs)
            known.positions.update(positions)
            self._found[key] = replace(known, lanes=known.lanes + lanes)
        else:
            self._found[key] = replace(known, is_in_other_grids=True)
        return True

    def settle_order(self, begin: tuple[Any, ...], hint: str, *, is_early: bool) -> None:
        """A launch has shown whether another order of its programs mends the findings whose keys begin so."""
        for key, known in self._found.items():
            if key[: len(begin)] == begin and known.is_early is not False:
                self._found[key] = replace(known, is_early=is_early, hint=hint)

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
        self._stops.clear()
        self.refused.clear()
        self.verdicts.clear()
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
        self.verdicts.absorb(verdicts)
        self.launches += launches
        self.programs += programs
        for key, finding in found.items():
            self.add(finding, key, finding.programs, finding.lanes if key in self._found else 0, finding.positions)
            if finding.is_early is not None:
                self.settle_order(key, finding.hint, is_early=finding.is_early)

    def lines(self) -> list[str]:
        """All findings as text, verdicts, and a summary."""
        return [*self.finding_lines(), *self.verdicts.lines(), *self.brief_lines()]

    def brief_lines(self) -> list[str]:
        """What was not executed, and a summary."""
        return [*(f"not executed: {reason}" for reason in self.refused), self.summary()]

    def finding_lines(self) -> list[str]:
        """All findings as text, those of one defect together."""
        return grouped_lines(self.findings)

    @property
    def first_stop(self) -> KernelFinding | None:
        """The first finding that was made while its kernel was at a line; None: there is none."""
        return next((finding for finding in self.findings if finding.rule in self._stops), None)

    def program_to_stop_at(self, finding: KernelFinding) -> int | None:
        """The first program of a finding, where its checker finds something before that this program does not show.

        None: nothing is found before, or this program does not tell them apart.
        """
        same = (one for one in self._found.values() if one.rule == finding.rule)
        before = list(takewhile(lambda one: one is not finding, same))
        first = min(finding.programs, default=0)
        return first if before and not any(first in one.programs for one in before) else None

    def summary(self) -> str:
        """One line."""
        if not self.launches and not self._found and not self.refused:
            return "no launches"
        groups = grouped(self.findings)
        counts = {severity: sum(f.severity is severity for f, _ in groups) for severity in reversed(Severity)}
        found = ", ".join(_counted(count, severity.name.lower()) for severity, count in counts.items() if count)
        launches, programs = _counted(self.launches, "launch", "es"), _counted(self.programs, "program")
        more = f"; {_counted(self.refused.total(), 'launch', 'es')} not executed" if self.refused else ""
        followers = sum(len(others) for _, others in groups)
        follow = f" ({followers} more may follow)" if followers else ""
        return f"{found or 'no findings'}{follow} in {launches} of {programs}{more}"

    def to_json(self) -> dict[str, Any]:
        """All findings as JSON values."""
        return {
            "launches": self.launches,
            "programs": self.programs,
            "verdicts": self.verdicts.to_json(),
            "notes": list(self.verdicts.notes),
            "not_executed": [{"because": reason, "launches": count} for reason, count in self.refused.items()],
            "findings": [finding.to_json() for finding in self.findings],
        }


def _counted(count: int, noun: str, ending: str = "s") -> str:
    return f"{count} {noun}{ending if count != 1 else ''}"
