"""The code of a kernel in a terminal, line by line with the samples of its instructions, and what clocks said."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import PurePosixPath
from typing import Any, Protocol

from bragg.analyze.annotated_code import AnnotatedCode, Samples, SourceLine
from bragg.analyze.bundle.remarks import Remark, Remarks
from bragg.code.source_map import Stage
from bragg.code.source_place import CallChain, user_place
from bragg.code.stall_reasons import StallReason
from bragg.model import Finding
from bragg.model.kernels.counted import COUNTED_PREFIX, EXECUTED, THREADS
from bragg.model.kernels.names import base_name
from bragg.views.text.code_legend import code_legend
from bragg.views.text.style import Style, printable
from bragg.views.text.units import count_text, share_text

_SHARE_WIDTH = len("100.0 %")
_BAR_WIDTH = 8
_CLOCK_TITLE = "what warps did, share of line"
_STALL_TITLE = "main stall, share of line"
_THREADS_TITLE = "threads a warp"
# Ranges of lines that are named on one line of the mapping.
_MAX_RANGES = 3
# Kinds of instructions that are named at one line; the JSON has all of them.
_MAX_KINDS = 3
# Of the code in a narrow terminal.
_LEAST_WIDTH = 20


def source_lines(
    code: AnnotatedCode,
    stage: Stage | None,
    style: Style,
    found: Sequence[Finding] = (),
    about: Iterable[str] = (),
    remarks: Remarks | None = None,
) -> list[str]:
    """The sections of a kernel's code, below a line for all of it.

    Without samples each line shows what it became, or where it comes from.

    Args:
        code: The code.
        stage: Which of its texts; None: the source.
        style: How to decorate, and the width to keep.
        found: Findings about the program; those of this kernel stand below their lines.
        about: Lines that tell of all of it, below its name.
        remarks: Of the compiler, which stand below their lines too; None: it was not asked.
    """
    table = _columns(code, stage, style)
    lines = [_title(code, style), *(printable(line) for line in about), *_notes(code, stage)]
    if remarks is not None:
        lines.append(f"compiled again by Triton {remarks.triton}: {count_text(len(remarks.found), 'remark')}")
    told = remarks.found if remarks else ()
    beside = _beside_lines(code, found, told)
    room = None if style.width is None else max(style.width - table.width - 2, _LEAST_WIDTH)
    for section in code.sections:
        width = max(len(_number(line, stage)) for line in section.lines)
        lines += ["", style.bold(printable(section.title)), style.dim(table.header().rstrip())]
        for line in section.lines:
            text = f"{_number(line, stage):>{width}}  {printable(line.text.expandtabs(4))}".rstrip()
            lines.append(f"{table.text(line)}  {style.head(text, room)}")
            for note in beside.pop((section.file, line.number), ()) if stage is None else ():
                shown = f"{'':{table.width + 2}}{printable(f'^ {note}')}"
                lines.append(style.warning(style.cut(shown, style.width)))
    lines += [
        style.warning(printable(f"{each.file}:{each.line}: Triton: {each.text}"))
        for each in told
        if (each.file, each.line) in beside
    ]
    legend = [style.dim(line) for line in style.paragraphs(code_legend(code, stage))]
    return [*lines, "", *legend] if legend else lines


def _beside_lines(
    code: AnnotatedCode, found: Sequence[Finding], remarks: Sequence[Remark]
) -> dict[tuple[str, int], list[str]]:
    """What stands below lines, by file and line."""
    beside: dict[tuple[str, int], list[str]] = defaultdict(list)
    for finding in found:
        if finding.kernel in ("", code.kernel, base_name(code.kernel)):
            beside[finding.file, finding.line].append(f"{finding.rule}: {finding.text}")
    for remark in remarks:
        beside[remark.file, remark.line].append(f"Triton: {remark.text}")
    return beside


def source_json(code: AnnotatedCode, stage: Stage | None) -> dict[str, Any]:
    """The same as values. Numbers of machine code are offsets in bytes, all others lines from 1."""
    return {
        "kernel": code.kernel,
        "ir": stage.value if stage else "python",
        "total": _samples_json(code.total),
        "unplaced": _samples_json(code.unplaced),
        "clock_cycles": code.clock_cycles,
        "counted_launches": code.counted_launches,
        "missing": code.missing or None,
        "sections": [
            {"title": section.title, "lines": [_line_json(line) for line in section.lines]} for section in code.sections
        ],
    }


def _title(code: AnnotatedCode, style: Style) -> str:
    total = code.total
    if not total.count and total.counts:
        counted = ", ".join(f"{number:,} {_counted_name(metric)}" for metric, number in sorted(total.counts.items()))
        launches = count_text(code.counted_launches, "launch", "launches")
        return f"{style.bold(printable(code.kernel))}  counted by instruction in {launches}: {printable(counted)}"
    if not total.count and _has_clocks(code):
        return f"{style.bold(printable(code.kernel))}  clocks told of {code.clock_cycles:,} cycles of its warps"
    if not total.count:
        return f"{style.bold(printable(code.kernel))}  this profile has no samples of it"
    stalled = share_text(total.stalled / total.count)
    main = f", mostly {_reason_text(total.main_reason)}" if total.main_reason else ""
    return f"{style.bold(printable(code.kernel))}  {count_text(round(total.count), 'sample')}, {stalled} stalled{main}"


def _notes(code: AnnotatedCode, stage: Stage | None) -> Iterator[str]:
    if code.missing:
        yield code.missing
    if code.unplaced.count:
        yield f"{share_text(code.unplaced.count / code.total.count)} of the samples belong to no line of this text"
    if code.total.count and stage in (Stage.TTIR, Stage.TTGIR, Stage.LLIR):
        yield "lines that come from the same place in the source cannot be told apart: each shows all their samples"


def _has_clocks(code: AnnotatedCode) -> bool:
    """Whether a line of this text has cycles."""
    return code.clock_cycles > 0 and any(line.clocks.cycles for section in code.sections for line in section.lines)


def _columns(code: AnnotatedCode, stage: Stage | None, style: Style) -> _Columns:
    """Samples and clocks beside each other, or what the profile has of them."""
    columns: list[_Columns] = [_SampleColumns(code, style)] if code.total.count else []
    columns += [_CountColumns(code)] if code.total.counts else []
    columns += [_ClockColumns(code, style)] if _has_clocks(code) else []
    return _Beside(columns) if columns else _MappingColumns(code, stage)


def _number(line: SourceLine, stage: Stage | None) -> str:
    return f"{line.number:04x}" if stage is Stage.SASS else str(line.number)


def _reason_text(reason: StallReason) -> str:
    return f"{reason.group.value}: {reason.name}"


class _Columns(Protocol):
    """What stands before each line.

    Attributes:
        width: Of all of it.
    """

    width: int

    def header(self) -> str: ...

    def text(self, line: SourceLine) -> str: ...


class _Beside:
    """Several columns, two spaces apart."""

    def __init__(self, columns: Sequence[_Columns]) -> None:
        self._columns = columns
        self.width = sum(each.width + 2 for each in columns) - 2

    def header(self) -> str:
        return "  ".join(each.header() for each in self._columns)

    def text(self, line: SourceLine) -> str:
        return "  ".join(each.text(line) for each in self._columns)


class _CountColumns:
    """What was counted of the line's instructions, and how many threads of a warp executed one."""

    def __init__(self, code: AnnotatedCode) -> None:
        total = code.total.counts
        self._metrics = sorted(total)
        self._widths = [max(len(_counted_name(each)), len(f"{total[each]:,}")) for each in self._metrics]
        self._has_threads = EXECUTED in total and THREADS in total
        self.width = sum(width + 2 for width in self._widths) - 2 + (len(_THREADS_TITLE) + 2) * self._has_threads

    def header(self) -> str:
        names = [_counted_name(each).rjust(width) for each, width in zip(self._metrics, self._widths, strict=True)]
        return "  ".join([*names, _THREADS_TITLE] if self._has_threads else names)

    def text(self, line: SourceLine) -> str:
        counts = line.samples.counts
        cells = [
            (f"{counts[each]:,}" if each in counts else "").rjust(width)
            for each, width in zip(self._metrics, self._widths, strict=True)
        ]
        if self._has_threads:
            executed = counts.get(EXECUTED, 0)
            cells.append((f"{counts.get(THREADS, 0) / executed:.1f}" if executed else "").rjust(len(_THREADS_TITLE)))
        return "  ".join(cells)


def _counted_name(metric: str) -> str:
    return metric.removeprefix(COUNTED_PREFIX)


class _ClockColumns:
    """Share of the cycles of the kernel's warps, and what most of the line's own are."""

    def __init__(self, code: AnnotatedCode, style: Style) -> None:
        self._total = code.clock_cycles
        self._style = style
        told = [_clock_text(line) for section in code.sections for line in section.lines]
        self._told_width = max(map(len, [_CLOCK_TITLE, *told]))
        self.width = _SHARE_WIDTH + 2 + self._told_width

    def header(self) -> str:
        return f"{'clocks':>{_SHARE_WIDTH}}  {_CLOCK_TITLE:{self._told_width}}"

    def text(self, line: SourceLine) -> str:
        if not line.clocks.cycles:
            return " " * self.width
        share = line.clocks.total / self._total
        return (
            f"{self._style.heat(f'{share_text(share):>{_SHARE_WIDTH}}', share)}  {_clock_text(line):{self._told_width}}"
        )


def _clock_text(line: SourceLine) -> str:
    """`wait for matrix products 98 %`."""
    clocks = line.clocks
    percent = 100 * clocks.cycles[clocks.main] / clocks.total if clocks.total else 0
    return printable(f"{clocks.main} {percent:.0f} %") if clocks.total else ""


class _SampleColumns:
    """Share of the samples, bar, and what warps mostly waited for."""

    def __init__(self, code: AnnotatedCode, style: Style) -> None:
        self._total = code.total
        self._style = style
        stalls = [_stall_text(line) for section in code.sections for line in section.lines]
        self._stall_width = max(map(len, [_STALL_TITLE, *stalls]))
        self.width = _SHARE_WIDTH + 2 + _BAR_WIDTH + 2 + self._stall_width

    def header(self) -> str:
        return f"{'share':>{_SHARE_WIDTH}}  {'':{_BAR_WIDTH}}  {_STALL_TITLE:{self._stall_width}}"

    def text(self, line: SourceLine) -> str:
        if not line.samples.count:
            return " " * self.width
        share = line.samples.count / self._total.count
        bar = f"{share_text(share):>{_SHARE_WIDTH}}  {self._style.bar(share, _BAR_WIDTH)}"
        return f"{self._style.heat(bar, share)}  {_stall_text(line):{self._stall_width}}"


def _stall_text(line: SourceLine) -> str:
    """`memory: long_scoreboard 62 %, for line 19`: the load is there, and what it loads is used here."""
    samples = line.samples
    reason = samples.main_reason
    if reason is None:
        return "issued" if samples.count else ""
    percent = 100 * samples.by_reason[reason] / samples.count
    text = f"{_reason_text(reason)} {'<1' if percent < 0.5 else f'{percent:.0f}'} %"
    producer = samples.main_producer
    return f"{text}, for line {producer[1]}" if producer and producer[1] != line.number else text


class _MappingColumns:
    """What a line of the source became, or which line a line of another text comes from."""

    def __init__(self, code: AnnotatedCode, stage: Stage | None) -> None:
        self._stage = stage
        lines = [line for section in code.sections for line in section.lines]
        self._has_instructions = any(Stage.SASS in line.became for line in lines)
        self.width = max([len(self._mapping(line)) for line in lines] + [len(self._name)])

    @property
    def _name(self) -> str:
        return "became" if self._stage is None else "comes from"

    def header(self) -> str:
        return f"{self._name:{self.width}}"

    def text(self, line: SourceLine) -> str:
        return f"{self._mapping(line):{self.width}}"

    def _mapping(self, line: SourceLine) -> str:
        if self._stage is None:
            return _became_text(line) if self._has_instructions else _ranges_text(line.became.get(Stage.TTGIR, ()))
        return _place_text(line.chain)


def _became_text(line: SourceLine) -> str:
    """`8 x LDG.U16, 47 others`."""
    numbers, kinds = line.became.get(Stage.SASS, ()), line.kinds
    others = len(numbers) - sum(kinds.values())
    texts = [f"{count} x {kind}" for kind, count in kinds.items()][:_MAX_KINDS]
    if len(kinds) > _MAX_KINDS:
        texts.append("…")
    if others:
        texts.append(count_text(others, "other" if kinds else "instruction"))
    return ", ".join(texts)


def _ranges_text(numbers: Sequence[int]) -> str:
    if not numbers:
        return ""
    ranges = _ranges(numbers)
    texts = [f"{first}" if first == last else f"{first}-{last}" for first, last in ranges[:_MAX_RANGES]]
    return f"ttgir {' '.join(texts)}{' …' if len(ranges) > _MAX_RANGES else ''}"


def _ranges(numbers: Sequence[int]) -> list[tuple[int, int]]:
    """Ascending numbers as first and last of each run."""
    ranges: list[tuple[int, int]] = []
    for number in numbers:
        if ranges and number <= ranges[-1][1] + 1:
            ranges[-1] = ranges[-1][0], number
        else:
            ranges.append((number, number))
    return ranges


def _place_text(chain: CallChain) -> str:
    """The user's line, and what it inlined where the line comes from."""
    own = user_place(chain)
    if own is None:
        return ""
    inner = chain[0]
    text = f"{PurePosixPath(own.file).name}:{own.line}"
    return printable(text if inner is own else f"{text} ({PurePosixPath(inner.file).name}:{inner.line})")


def _samples_json(samples: Samples) -> dict[str, Any]:
    return {
        "samples": samples.count,
        "stalled": samples.stalled,
        "reasons": {reason.vendor_name: count for reason, count in samples.by_reason.items()},
        "counts": samples.counts,
        "waits_for": [
            {"file": file, "line": line, "samples": count} for (file, line), count in samples.by_producer.items()
        ],
    }


def _line_json(line: SourceLine) -> dict[str, Any]:
    return {
        "number": line.number,
        "text": line.text,
        **_samples_json(line.samples),
        "cycles": line.clocks.cycles,
        "places": [place._asdict() for place in line.chain],
        "instructions": dict(line.kinds),
        "became": {stage.value: numbers for stage, numbers in line.became.items()},
    }
