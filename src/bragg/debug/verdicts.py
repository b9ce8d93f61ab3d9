"""What a launch without findings says of others: nothing but its own values, or all data that it might have met."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import asdict, dataclass
from typing import Any

from bragg.debug.flow.dependence import dependence_of
from bragg.debug.host.launch import Launch

__all__ = ["Verdict", "Verdicts", "judged"]

# The checkers that see every access outside of a tensor, and every race.
_NEEDED = {"out-of-bounds", "data-race"}


@dataclass(frozen=True)
class Verdict:
    """Of launches of one kernel.

    Attributes:
        kernel: Its name.
        verdict: `finding`; `clean`: for these values; `proven`: whatever the data holds, for these sizes and strides.
        because: Why it is not proven; empty for others.
        file: Of the line that it is about; empty: of none.
        line: The line.
    """

    kernel: str
    verdict: str
    because: str = ""
    file: str = ""
    line: int = 0

    def __str__(self) -> str:
        place = f" ({self.file}:{self.line})" if self.line else ""
        return f"{self.kernel}{place}: {self.because}"


def judged(launch: Launch, *, has_findings: bool, checkers: Collection[str]) -> Verdict:
    """The verdict of a launch that has been executed.

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
    place = dependence_of(launch.program, launch.fixed)
    if place is not None:
        return Verdict(kernel, "clean", place.what, place.file, place.line)
    return Verdict(kernel, "proven")


class Verdicts:
    """How many launches have which verdict."""

    def __init__(self) -> None:
        self.counts: Counter[Verdict] = Counter()

    def kernels(self) -> list[str]:
        """Those that were launched."""
        return list(dict.fromkeys(one.kernel for one in self.counts))

    def lines(self) -> list[str]:
        """How many launches are proven, and what others lack."""
        of = {name: sum(n for one, n in self.counts.items() if one.verdict == name) for name in ("proven", "clean")}
        lines = [f"proven whatever the data holds: {_launches(of['proven'])}"] if of["proven"] else []
        if of["clean"]:
            lines.append(f"clean for these values: {_launches(of['clean'])}")
            lines += [f"  {one}" for one in self.counts if one.verdict == "clean"]
        return lines

    def to_json(self) -> list[dict[str, Any]]:
        """Each verdict with the number of launches."""
        return [{**asdict(one), "launches": count} for one, count in self.counts.items()]


def _launches(count: int) -> str:
    return f"{count} launch{'es' if count > 1 else ''}"
