"""The lines of a kernel with the samples of its instructions.

Instruction samples hang below the node of their kernel, in this shape:

    kernel → line of the kernel's source → line of each inlined function → instruction

| node | frame |
|---|---|
| line | kind line; file and line; name: the function that the line is in, empty when unknown |
| instruction | kind line without a file; name `+0x1a0`: bytes from the beginning of the kernel's code |

Instructions alone have values of their own, in metrics that add up along the path: `num_samples`,
`num_stalled_samples` (of warps that could not issue), and `stalled_<reason>` for each reason of the device, with the
vendor's name (`bragg.code.stall_reasons`): all samples of it, whether another warp issued in that cycle or not. What
was counted of them has metrics of `bragg.model.kernels.counted`, with the vendor's names. A line whose instructions are
not known may have values itself. The attribute `code` of a kernel's frame, `symbol/hash`, names
its texts in the sources of the profile (`bragg.code.source_map`).

Where these texts are there, an instruction's own place counts and not the nodes above it: it knows columns, and what
Triton before 3.8 inlined.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from bragg.analyze.annotated_code import AnnotatedCode, Clocks, CodeSection, Samples, SourceLine, StagedCode
from bragg.analyze.instruction_nodes import flops_by_offset, line_nodes, offset_bytes
from bragg.analyze.kernel_choice import KernelChoice, checked_lines, why_absent, why_no_code
from bragg.code.sass.instruction_kinds import instruction_kinds
from bragg.code.sass.listing import Instruction
from bragg.code.sass.waits_for import Waits
from bragg.code.source_map import KernelCode, Stage
from bragg.code.source_place import CallChain, SourcePlace, function_spans, is_library, user_place
from bragg.code.stall_reasons import stall_metrics
from bragg.errors import NothingRecorded
from bragg.model import Profile
from bragg.model.ids import NodeId
from bragg.model.kernels.counted import COUNTED_LAUNCHES, EXECUTED, FLOPS, THREADS, is_counted_by_instruction
from bragg.model.kernels.inside import WITH_CLOCKS, InsideKernel
from bragg.model.kernels.names import base_name

_SAMPLES = "num_samples"
# Lines shown around those that matter, in a file whose functions are not known.
_CONTEXT_LINES = 2


def annotate(profile: Profile, kernel: KernelChoice, stage: Stage | None) -> AnnotatedCode:
    """The code of a kernel with its samples.

    Args:
        profile: Where it ran.
        kernel: See `choose_kernel`.
        stage: Which text; None: the source.

    Raises:
        NothingRecorded: The profile does not have that text.
    """
    samples = list(_samples_of(profile, kernel))
    annotator = _Annotator(profile, kernel, samples)
    sections = annotator.source() if stage is None else [annotator.stage(stage)]
    if not sections or not any(section.lines for section in sections):
        what = "source" if stage is None else stage.value.upper()
        raise NothingRecorded(
            _lacking(kernel, what),
            hint=why_absent(profile, kernel) or _why_no_code(profile),
        )
    return AnnotatedCode(
        kernel.name,
        sections,
        _total(samples),
        annotator.unplaced,
        why_absent(profile, kernel),
        sum(each.covered_cycles for each in annotator.inside),
        _counted_launches(profile, kernel),
    )


def annotate_stages(profile: Profile, kernel: KernelChoice) -> StagedCode:
    """The source of a kernel and the samples of each line of its texts; what the profile lacks is empty."""
    samples = list(_samples_of(profile, kernel))
    annotator = _Annotator(profile, kernel, samples)
    code = kernel.code or KernelCode("", {})
    by_stage = {stage: annotator.samples_by_line(stage) for stage in code.texts}
    return StagedCode(kernel.name, code, annotator.source(), by_stage, _total(samples), why_absent(profile, kernel))


def samples_of_own_lines(profile: Profile, kernel: KernelChoice) -> dict[tuple[str, int], Samples]:
    """Samples by file and line of the user's code; each counts in its innermost line alone."""
    found: dict[tuple[str, int], Samples] = defaultdict(Samples)
    for sample in _samples_of(profile, kernel):
        if place := user_place(sample.chain):
            found[place.file, place.line].add(sample.samples)
    return found


def _total(samples: Sequence[_Sample]) -> Samples:
    total = Samples()
    for sample in samples:
        total.add(sample.samples)
    return total


def _counted_launches(profile: Profile, kernel: KernelChoice) -> int:
    if COUNTED_LAUNCHES not in profile.metrics:
        return 0
    return int(profile.own(COUNTED_LAUNCHES)[kernel.nodes].sum())


def _lacking(kernel: KernelChoice, what: str) -> str:
    """That a text is missing; nobody asks for a symbol of C++."""
    if kernel.name.startswith("_Z"):
        return f"this kernel comes from a library, and this profile does not have its {what}"
    return f"this profile has no {what} of {kernel.name}"


def _why_no_code(profile: Profile) -> str:
    if target := profile.run.target:
        return f"it was not compiled for {target}, or its code is left out: bragg run said why"
    if profile.run.interpreted_launches:
        return "bragg's interpreter executed it, which compiles nothing: bragg run --target sm_90, or record on a GPU"
    return why_no_code(profile)


@dataclass(frozen=True)
class _Sample:
    """Samples of one instruction.

    Attributes:
        offset_bytes: Of the instruction; None when only the line is known.
        chain: Where it comes from.
        samples: How many.
    """

    offset_bytes: int | None
    chain: CallChain
    samples: Samples


class _Function(NamedTuple):
    """Lines of a file that are shown together; the name is empty outside of functions."""

    file: str
    name: str
    lines: Sequence[int]


def _samples_of(profile: Profile, kernel: KernelChoice) -> Iterator[_Sample]:
    counted = [metric for metric in profile.metrics if is_counted_by_instruction(metric)]
    has_samples = _SAMPLES in profile.metrics
    if not has_samples and not counted:
        return
    reasons = stall_metrics(profile.metrics)
    instructions = kernel.code.instruction_at if kernel.code else {}
    waits = Waits(kernel.code.instructions if kernel.code else ())
    flops = flops_by_offset(instructions) if {EXECUTED, THREADS} <= set(counted) else {}
    for node, path in line_nodes(profile, kernel.nodes):
        own = Samples(
            profile.own(_SAMPLES)[node].item() if has_samples else 0,
            {reason: count for name, reason in reasons.items() if (count := profile.own(name)[node].item())},
            counts={metric: count for metric in counted if (count := profile.own(metric)[node].item())},
        )
        if own.count or own.counts:
            offset = offset_bytes(profile, node)
            known = instructions.get(offset) if offset is not None else None
            if offset in flops:
                counts = own.counts
                counts[FLOPS] = flops[offset].made(counts.get(EXECUTED, 0), counts.get(THREADS, 0))
            if offset is not None:
                own.by_producer = _producers(waits, instructions, offset, own)
            yield _Sample(offset, known.chain if known else _chain(profile, path), own)


def _producers(
    waits: Waits, instructions: Mapping[int, Instruction], offset_bytes: int, samples: Samples
) -> dict[tuple[str, int], float]:
    """Samples of an instruction that waited for a result, by the line that makes it; several share them."""
    found: dict[tuple[str, int], float] = {}
    for reason, count in samples.by_reason.items():
        producers = waits.producers(offset_bytes, reason.name) if count else ()
        for producer in producers:
            if place := user_place(instructions[producer].chain):
                key = place.file, place.line
                found[key] = found.get(key, 0) + count / len(producers)
    return found


def _chain(profile: Profile, path: Sequence[NodeId]) -> CallChain:
    frames = profile.tree.frames
    rows = [profile.tree.frame_of(node) for node in reversed(path)]
    return tuple(
        SourcePlace(frames.file[row], int(frames.line[row]), 0, frames.name[row]) for row in rows if frames.file[row]
    )


class _Annotator:
    """Brings samples and lines together."""

    def __init__(self, profile: Profile, kernel: KernelChoice, samples: Sequence[_Sample]) -> None:
        self._sources = profile.sources
        self._checked = checked_lines(profile, kernel.name)
        self._kernel = kernel
        self._code = kernel.code or KernelCode("", {})
        self._samples = samples
        self._lines_of_files: dict[str, list[str]] = {}
        name = kernel.name.removesuffix(WITH_CLOCKS)
        self.inside = [each for each in profile.run.inside_kernels if each.kernel == name]
        self._clocks = _clocks_of_lines(self.inside)
        self.unplaced = Samples()

    def source(self) -> list[CodeSection]:
        """The functions that the kernel's instructions come from, and those that checks found something in."""
        at = self._samples_by_source_line()
        lines = {(place.file, place.line) for chain in self._chains() for place in chain if not is_library(place.file)}
        lines |= self._checked
        return [
            CodeSection(
                f"{function.name}  {function.file}".strip(),
                [self._source_line(function.file, line, at) for line in function.lines],
                function.file,
            )
            for function in self._functions(lines)
        ]

    def stage(self, stage: Stage) -> CodeSection:
        """All lines of one text."""
        at = self.samples_by_line(stage)
        lines = [
            SourceLine(
                self._number(stage, index),
                text,
                at.get(index, Samples()),
                self._code.places(stage)[index],
                {
                    other: [self._number(other, line) for line in self._code.lines_of_lines(stage, index, other)]
                    for other in self._code.texts
                    if other is not stage
                },
            )
            for index, text in enumerate(self._code.lines(stage))
        ]
        return CodeSection(f"{self._code.key}.{stage.value}", lines)

    def _chains(self) -> Iterator[CallChain]:
        yield from (instruction.chain for instruction in self._code.instructions)
        yield from (sample.chain for sample in self._samples)
        if not self._code.instructions:
            yield from (chain for stage in self._code.texts for chain in self._code.places(stage))

    def _samples_by_source_line(self) -> dict[tuple[str, int], Samples]:
        """Samples of each line with what it inlined; a sample counts once in a line, and in each line on its way."""
        found: dict[tuple[str, int], Samples] = defaultdict(Samples)
        for sample in self._samples:
            lines = {(place.file, place.line) for place in sample.chain if not is_library(place.file)}
            for line in lines:
                found[line].add(sample.samples)
            if not lines:
                self.unplaced.add(sample.samples)
        return found

    def samples_by_line(self, stage: Stage) -> dict[int, Samples]:
        """Samples of the lines of a stage. Lines of one place cannot be told apart: each shows all of them."""
        index_of = {instruction.offset_bytes: index for index, instruction in enumerate(self._code.instructions)}
        found: dict[int, Samples] = defaultdict(Samples)
        for sample in self._samples:
            index = index_of.get(sample.offset_bytes) if sample.offset_bytes is not None else None
            if stage is Stage.SASS:
                lines = [] if index is None else [index]
            elif index is not None:
                lines = self._code.lines_of_lines(Stage.SASS, index, stage)
            else:
                lines = self._code.lines_of_place(stage, sample.chain)
            for line in lines:
                found[line].add(sample.samples)
            if not lines:
                self.unplaced.add(sample.samples)
        return found

    def _functions(self, lines: set[tuple[str, int]]) -> list[_Function]:
        """The functions that have one of these lines, the kernel's own first."""
        symbol = self._code.symbol or base_name(self._kernel.name)
        found: list[_Function] = []
        for file in {file for file, _ in lines}:
            in_file = {line for other, line in lines if other == file}
            found += _functions_of(file, self._sources.get(file, ""), in_file)
        return sorted(found, key=lambda function: (function.name != symbol, function.file, function.lines[0]))

    def _source_line(self, file: str, number: int, at: Mapping[tuple[str, int], Samples]) -> SourceLine:
        became = {
            stage: [self._number(stage, line) for line in self._code.lines_of_source(stage, file, number)]
            for stage in self._code.texts
        }
        text = self._text_lines(file)
        line = text[number - 1] if number <= len(text) else ""
        clocks = self._clocks.get((file, number), Clocks())
        instructions = self._code.instruction_at
        kinds = instruction_kinds(instructions[offset].text for offset in became.get(Stage.SASS, ()))
        return SourceLine(number, line, at.get((file, number), Samples()), (), became, clocks, kinds)

    def _text_lines(self, file: str) -> list[str]:
        if file not in self._lines_of_files:
            self._lines_of_files[file] = self._sources.get(file, "").splitlines()
        return self._lines_of_files[file]

    def _number(self, stage: Stage, index: int) -> int:
        return self._code.instructions[index].offset_bytes if stage is Stage.SASS else index + 1


def _clocks_of_lines(inside: Sequence[InsideKernel]) -> dict[tuple[str, int], Clocks]:
    """Cycles of each line with what it inlined; a stretch counts once in each line on its way."""
    found: dict[tuple[str, int], Clocks] = defaultdict(Clocks)
    for stretch in (stretch for kernel in inside for stretch in kernel.stretches):
        for line in {(each.file, each.line) for each in stretch.lines if not is_library(each.file)}:
            cycles = found[line].cycles
            cycles[stretch.does] = cycles.get(stretch.does, 0) + stretch.total
    return found


def _functions_of(file: str, text: str, lines: set[int]) -> Iterator[_Function]:
    """The functions of a file that have one of these lines; for lines outside of functions, some around them."""
    outside = set(lines)
    for first, last, name in function_spans(text):
        inside = {line for line in outside if first <= line <= last}
        if inside:
            outside -= inside
            yield _Function(file, name, range(first, last + 1))
    if outside:
        last_line = len(text.splitlines()) or max(outside)
        around = {line + step for line in outside for step in range(-_CONTEXT_LINES, _CONTEXT_LINES + 1)}
        yield _Function(file, "", sorted(line for line in around if 1 <= line <= last_line))
