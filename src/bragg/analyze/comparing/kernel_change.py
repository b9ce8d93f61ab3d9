"""One kernel in two profiles: its lines side by side, what compilers made of it, and its instructions by name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from bragg.analyze.annotated_code import AnnotatedCode, CodeSection, SourceLine
from bragg.analyze.comparing.compiled_changes import CompiledChange, changes_of
from bragg.analyze.kernel_choice import KernelChoice, choose_kernel
from bragg.analyze.kernel_summary import KernelSummary, summary_of
from bragg.analyze.source_lines import annotate
from bragg.code.sass.instruction_kinds import INSTRUCTION
from bragg.code.source_map import KernelCode
from bragg.model import FrameKind, Profile
from bragg.model.kernels.names import base_name


@dataclass(frozen=True)
class LinePair:
    """A line of both codes, or of one.

    Attributes:
        before: The line; None: it is new.
        after: The same of the other code; None: it has gone.
    """

    before: SourceLine | None
    after: SourceLine | None


@dataclass(frozen=True)
class PairedSection:
    """A function of both codes, or of one.

    Attributes:
        title: Its name, and the file of the later code that it is in.
        lines: In the order of the later code; what has gone stands before what came for it.
    """

    title: str
    lines: list[LinePair]


@dataclass(frozen=True)
class KernelChange:
    """A kernel before and after.

    Attributes:
        codes: Its code before and after.
        summaries: What it takes of the GPU's time before and after.
        sections: Its functions.
        compiled: What compilers made otherwise.
        instructions: How many the machine code had before and has after; 0: the profile does not have it.
        opcodes: By the name of an instruction how many there were before and are after, the largest change first;
            those that differ.
    """

    codes: tuple[AnnotatedCode, AnnotatedCode]
    summaries: tuple[KernelSummary, KernelSummary]
    sections: list[PairedSection]
    compiled: list[CompiledChange]
    instructions: tuple[int, int]
    opcodes: dict[str, tuple[int, int]]


def kernel_change(before: Profile, after: Profile, kernel: KernelChoice) -> KernelChange:
    """Put a kernel of two profiles side by side.

    Args:
        before: The earlier one, in which the kernel has the same name, or another specialization.
        after: The later one.
        kernel: Of the later one.

    Raises:
        UsageError: The earlier profile has no kernel of this name.
        NothingRecorded: A profile does not have the source of the kernel.
    """
    earlier = choose_kernel(before, _name_before(before, kernel.name))
    codes = annotate(before, earlier, None), annotate(after, kernel, None)
    summaries = summary_of(before, earlier), summary_of(after, kernel)
    one, other = (each.compiled for each in summaries)
    old, new = _opcodes(earlier.code), _opcodes(kernel.code)
    return KernelChange(
        codes,
        summaries,
        paired_sections(codes[0].sections, codes[1].sections),
        list(changes_of(one, other, kernel.name)) if one and other else [],
        (old.total(), new.total()),
        _changed(old, new),
    )


def _name_before(profile: Profile, name: str) -> str:
    """As the earlier profile calls a kernel: so, or without the specialization."""
    frames = profile.tree.frames
    names = {each for each, kind in zip(frames.name, frames.kind.tolist(), strict=True) if kind == FrameKind.KERNEL}
    return name if name in names else base_name(name)


def paired_sections(before: Sequence[CodeSection], after: Sequence[CodeSection]) -> list[PairedSection]:
    """Functions by their names, those that have gone last."""
    earlier = {_function(each): each for each in before}
    pairs = [(earlier.pop(_function(each), None), each) for each in after]
    found = [PairedSection(each.title, list(_pairs(old.lines if old else [], each.lines))) for old, each in pairs]
    return found + [PairedSection(each.title, list(_pairs(each.lines, []))) for each in earlier.values()]


def _function(section: CodeSection) -> str:
    return section.title.removesuffix(section.file).strip()


def _pairs(before: Sequence[SourceLine], after: Sequence[SourceLine]) -> Iterator[LinePair]:
    """Lines with the same text, whatever their indentation, and between them those of one side."""
    old, new = ([line.text.strip() for line in lines] for lines in (before, after))
    matcher = SequenceMatcher(None, old, new, autojunk=False)
    for same, first, last, start, end in matcher.get_opcodes():
        if same == "equal":
            yield from map(LinePair, before[first:last], after[start:end])
        else:
            yield from (LinePair(line, None) for line in before[first:last])
            yield from (LinePair(None, line) for line in after[start:end])


def _changed(old: Counter[str], new: Counter[str]) -> dict[str, tuple[int, int]]:
    """Empty too where a side has no machine code, or none as text."""
    if not old or not new:
        return {}
    changed = {name: (old[name], new[name]) for name in old | new if old[name] != new[name]}
    return dict(sorted(changed.items(), key=lambda item: (-abs(item[1][1] - item[1][0]), item[0])))


def _opcodes(code: KernelCode | None) -> Counter[str]:
    instructions = code.instructions if code else ()
    starts = (INSTRUCTION.match(each.text) for each in instructions)
    return Counter(start["name"] + start["modifiers"] for start in starts if start)
