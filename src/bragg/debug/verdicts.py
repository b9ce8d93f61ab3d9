"""What a launch without findings says of others: nothing but its own values, or all data that it might have met."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import asdict, dataclass, replace
from typing import Any

from bragg.debug.flow.dependence import dependence_of
from bragg.debug.host.launch import Launch

# The checkers that see every access outside of a tensor, and every race.
_NEEDED = {"out-of-bounds", "data-race"}
_SHOWN = 3


@dataclass(frozen=True)
class Verdict:
    """Of launches of one kernel.

    Attributes:
        kernel: Its name.
        verdict: `finding`; `clean`: for these values; `proven`: whatever the data holds, for these sizes and strides.
        because: Why it is not proven; empty for others.
        file: Of the line that it is about; empty: of none.
        line: The line.
        configurations: Of its autotuner; 1: it has none.
        executed: How many of them were executed.
    """

    kernel: str
    verdict: str
    because: str = ""
    file: str = ""
    line: int = 0
    configurations: int = 1
    executed: int = 1

    def __str__(self) -> str:
        place = f" ({self.file}:{self.line})" if self.line else ""
        return f"{self.kernel}{place}: {self.because}"


def judged(launch: Launch, *, has_findings: bool, checkers: Collection[str]) -> Verdict:
    """The verdict of a launch that has been executed, with the first configuration of its autotuner or with several."""
    configurations = len(launch.call.tuner.configs) if launch.call.tuner is not None else 1
    found = _judged(launch, has_findings=has_findings, checkers=checkers)
    return replace(found, configurations=configurations, executed=launch.configurations)


def _judged(launch: Launch, *, has_findings: bool, checkers: Collection[str]) -> Verdict:
    """The verdict, whatever configurations there are.

    No access leaves its tensor, and no two programs race, whatever the tensors hold: that is what is proven.

    Args:
        launch: The launch.
        has_findings: Something was found in it.
        checkers: Names of those that watched.
    """
    kernel = launch.kernel
    if has_findings:
        return Verdict(kernel, "finding")
    if not set(checkers) >= _NEEDED:
        return Verdict(kernel, "clean", f"{' and '.join(sorted(_NEEDED - set(checkers)))} did not watch")
    if launch.only is not None:
        return Verdict(kernel, "clean", "one program alone was executed")
    if not launch.programs:
        return Verdict(kernel, "clean", "the grid has no programs")
    if launch.mixes_atomics:
        return Verdict(kernel, "clean", "atomics and other accesses share a tensor")
    if launch.lanes_meet:
        return Verdict(kernel, "clean", "lanes of one program write one element, here the same value")
    place = dependence_of(launch.program, launch.fixed)
    if place is not None:
        return Verdict(kernel, "clean", place.what, place.file, place.line)
    return Verdict(kernel, "proven")


class Verdicts:
    """How many launches have which verdict, and in which other ways kernels were executed again.

    Attributes:
        counts: Launches of each verdict.
        notes: What the author of a kernel may want to know, once each.
    """

    def __init__(self) -> None:
        self.counts: Counter[Verdict] = Counter()
        self.notes: dict[str, None] = {}
        self._varied: dict[str, list[str]] = {}

    def vary(self, kernel: str, *whats: str) -> None:
        """Note that a kernel was executed again with another order, block size or the like; or that it was to be."""
        known = self._varied.setdefault(kernel, [])
        known.extend(what for what in whats if what not in known)

    def note(self, kernel: str, text: str) -> None:
        """Keep what its author may want to know of a kernel, and what no checker calls wrong."""
        self.notes[f"{kernel}: {text}"] = None

    def absorb(self, others: Verdicts) -> None:
        """Add those of another process."""
        self.counts.update(others.counts)
        self.notes.update(others.notes)
        for kernel, whats in others._varied.items():
            self.vary(kernel, *whats)

    def clear(self) -> None:
        """Begin anew."""
        self.counts.clear()
        self.notes.clear()
        self._varied.clear()

    @property
    def are_varied(self) -> bool:
        """Whether kernels were executed again in other ways, or were to be."""
        return bool(self._varied)

    def kernels(self) -> list[str]:
        """Those that were launched."""
        return list(dict.fromkeys(one.kernel for one in self.counts))

    def lines(self) -> list[str]:
        """How many launches are proven, and what others lack."""
        of = {name: sum(n for one, n in self.counts.items() if one.verdict == name) for name in ("proven", "clean")}
        lines = [self._proven(of["proven"])] if of["proven"] else []
        if of["clean"]:
            lines.append(f"clean for these values: {_launches(of['clean'])}")
            lines += [f"  {one}" for one in self.counts if one.verdict == "clean"]
        again = [f"{kernel}: {_variation(whats)}" for kernel, whats in self._varied.items()]
        return lines + [f"note: {note}" for note in self.notes] + self._configurations() + again

    def _proven(self, count: int) -> str:
        kernels = list(dict.fromkeys(one.kernel for one in self.counts if one.verdict == "proven"))
        more = f" and {len(kernels) - _SHOWN} more" if len(kernels) > _SHOWN else ""
        named = f"{_launches(count)} of {', '.join(kernels[:_SHOWN])}{more}"
        return (
            f"no access outside of a tensor and no race, proven whatever the data holds ({named}); whether results are "
            "right was not checked"
        )

    def _configurations(self) -> list[str]:
        """Which kernels have more configurations than were executed with."""
        executed: dict[tuple[str, int], int] = {}
        for one in self.counts:
            if one.configurations > 1:
                key = (one.kernel, one.configurations)
                executed[key] = max(executed.get(key, 0), one.executed)
        return [
            f"{kernel}: {n} of {of} configurations executed{self._lacking(kernel) if n == 1 else ''}"
            for (kernel, of), n in executed.items()
        ]

    def _lacking(self, kernel: str) -> str:
        """Why a single configuration was executed, or what executes more."""
        if kernel not in self._varied:
            return ": bragg check --vary executes more"
        return ": the others fail" + (", so mend what was found first" if self._has_finding(kernel) else "")

    def _has_finding(self, kernel: str) -> bool:
        return any(one.verdict == "finding" for one in self.counts if one.kernel == kernel)

    def to_json(self) -> list[dict[str, Any]]:
        """Each verdict with the number of launches."""
        return [{**asdict(one), "launches": count} for one, count in self.counts.items()]


def _variation(whats: list[str]) -> str:
    return f"executed again with another {', '.join(whats)}" if whats else "not executed in another way"


def _launches(count: int) -> str:
    return f"{count} launch{'es' if count > 1 else ''}"
