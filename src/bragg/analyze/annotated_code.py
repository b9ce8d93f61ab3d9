"""The code of a kernel, line by line, with the samples of its instructions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from bragg.code.source_map import KernelCode, Stage
from bragg.code.source_place import CallChain
from bragg.code.stall_reasons import StallReason, main_reason

# Less is one wait among several.
_MUCH = 0.2


@dataclass
class Samples:
    """Samples of one line.

    Attributes:
        count: All of them; a fraction where samples were shared out among call paths.
        by_reason: Those of each reason that occurred.
        by_producer: Those that waited for a result of an instruction, by file and line of that.
        counts: What was counted of its instructions in launches that were counted exactly, by metric.
    """

    count: float = 0
    by_reason: dict[StallReason, float] = field(default_factory=dict)
    by_producer: dict[tuple[str, int], float] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)

    def add(self, other: Samples) -> None:
        """Count the samples of another line here too."""
        self.count += other.count
        for reason, count in other.by_reason.items():
            self.by_reason[reason] = self.by_reason.get(reason, 0) + count
        for place, count in other.by_producer.items():
            self.by_producer[place] = self.by_producer.get(place, 0) + count
        for metric, counted in other.counts.items():
            self.counts[metric] = self.counts.get(metric, 0) + counted

    @property
    def stalled(self) -> float:
        """Samples of warps that could not issue."""
        return sum(count for reason, count in self.by_reason.items() if reason.group.is_stall)

    @property
    def main_producer(self) -> tuple[str, int] | None:
        """File and line of what most of these samples waited for; None: less than a fifth did, or it is not known."""
        place = max(self.by_producer, key=lambda each: self.by_producer[each], default=None)
        return place if place and self.by_producer[place] >= _MUCH * self.count else None

    @property
    def main_reason(self) -> StallReason | None:
        """What warps mostly waited for here."""
        return main_reason(self.by_reason)


@dataclass
class Clocks:
    """What clocks inside of a kernel said of one line.

    Attributes:
        cycles: That warps took, by what they did.
    """

    cycles: dict[str, int] = field(default_factory=dict)

    @property
    def total(self) -> int:
        """All of them."""
        return sum(self.cycles.values())

    @property
    def main(self) -> str:
        """What took most of them; empty: nothing."""
        return max(self.cycles, key=lambda does: self.cycles[does], default="")


@dataclass(frozen=True)
class SourceLine:
    """A line as it is shown.

    Attributes:
        number: From 1; of machine code the offset in bytes.
        text: The line.
        samples: Those of its instructions, with what it inlined.
        chain: Where a line of intermediate code comes from.
        became: Numbers of its lines at each stage.
        clocks: Cycles of its stretches, with what it inlined.
        kinds: How many of its instructions access memory or multiply matrices, by kind: `LDG.U16`.
    """

    number: int
    text: str
    samples: Samples
    chain: CallChain
    became: dict[Stage, list[int]]
    clocks: Clocks = field(default_factory=Clocks)
    kinds: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class CodeSection:
    """Lines that belong together.

    Attributes:
        title: What they are: a function with its file, or a stage.
        lines: In order.
        file: That they are in; empty for a stage.
    """

    title: str
    lines: list[SourceLine]
    file: str = ""


@dataclass(frozen=True)
class AnnotatedCode:
    """A kernel's code with its samples.

    Attributes:
        kernel: Its name in the profile.
        sections: The code; the kernel's own function first.
        total: All samples of the kernel.
        unplaced: Samples that belong to no line that is shown.
        missing: What the profile lacks of this kernel, and why; may be empty.
        clock_cycles: Cycles of the warps that clocks measured; 0: it had none.
        counted_launches: That counts by instruction add up to.
    """

    kernel: str
    sections: list[CodeSection]
    total: Samples
    unplaced: Samples
    missing: str = ""
    clock_cycles: int = 0
    counted_launches: int = 0


@dataclass(frozen=True)
class StagedCode:
    """A kernel's code at all stages, with its samples at each.

    Attributes:
        kernel: Its name in the profile.
        code: Its texts; without texts when the profile has none.
        source: The functions that it comes from; the kernel's own first.
        samples: By stage, those of each line by its index.
        total: All samples of the kernel.
        missing: What the profile lacks of this kernel, and why; may be empty.
    """

    kernel: str
    code: KernelCode
    source: list[CodeSection]
    samples: Mapping[Stage, Mapping[int, Samples]]
    total: Samples
    missing: str = ""
