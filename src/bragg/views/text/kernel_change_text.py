"""One kernel of two profiles as lines: what changed of it, its code side by side, and its instructions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from bragg.analyze.annotated_code import AnnotatedCode, SourceLine
from bragg.analyze.comparing.kernel_change import KernelChange, LinePair
from bragg.code.source_map import Stage
from bragg.views.text.compiled_text import compiled_facts
from bragg.views.text.diff_text import values_text
from bragg.views.text.style import Style, printable
from bragg.views.text.units import count_text, share_text

_MAX_OPCODES = 12
_INSTRUCTIONS, _SAMPLES = "instructions", "share of samples"


def kernel_change_lines(change: KernelChange, style: Style) -> Iterator[str]:
    """The time of a launch, what compilers made otherwise, all lines of the kernel's functions, and instructions.

    Args:
        change: What to show.
        style: How to decorate, and the width to keep.
    """
    before, after = (code.kernel for code in change.codes)
    yield style.bold(printable(before if before == after else f"{before}{style.arrow}{after}"))
    old_ns, new_ns = (each.time_ns / each.launches if each.launches else 0.0 for each in change.summaries)
    if old_ns and new_ns:
        yield f"a launch: {values_text(old_ns, new_ns, 'ns')}"
    if change.compiled:
        yield style.cut(f"compiled otherwise: {compiled_facts(change.compiled)}", style.width)
    if all(code.total.count for code in change.codes):
        yield f"samples: {' → '.join(_samples_text(code) for code in change.codes)}"
    columns = _Columns(change)
    for section in change.sections:
        yield from ("", style.bold(printable(section.title)), *(style.dim(line) for line in columns.header()))
        for pair in section.lines:
            line = style.cut(columns.text(pair), style.width)
            yield line if pair.before and pair.after else style.warning(line)
    yield from _opcode_lines(change, style)


def kernel_change_json(change: KernelChange) -> dict[str, Any]:
    """The same as values; `null` stands for a line that one side alone has."""
    totals = [code.total.count for code in change.codes]
    return {
        "before": change.codes[0].kernel,
        "after": change.codes[1].kernel,
        "launches": [each.launches for each in change.summaries],
        "gpu_time_ns": [each.time_ns for each in change.summaries],
        "samples": totals,
        "compiled": [asdict(each) for each in change.compiled],
        "instructions": list(change.instructions),
        "opcodes": {name: list(counts) for name, counts in change.opcodes.items()},
        "sections": [
            {
                "title": section.title,
                "lines": [{"before": _values(pair.before), "after": _values(pair.after)} for pair in section.lines],
            }
            for section in change.sections
        ],
    }


def _values(line: SourceLine | None) -> dict[str, Any] | None:
    if line is None:
        return None
    return {
        "number": line.number,
        "text": line.text,
        "instructions": _instructions(line),
        "samples": line.samples.count,
    }


def _instructions(line: SourceLine) -> int:
    return len(line.became.get(Stage.SASS, ()))


def _samples_text(code: AnnotatedCode) -> str:
    """`3,398, 99.6 % stalled, mostly memory: long_scoreboard`."""
    total = code.total
    main = f", mostly {total.main_reason.group.value}: {total.main_reason.name}" if total.main_reason else ""
    return f"{total.count:,.0f}, {share_text(total.stalled / total.count)} stalled{main}"


class _Columns:
    """Instructions and samples of lines before and after, their numbers, and what became of each: ` `, `-` or `+`."""

    def __init__(self, change: KernelChange) -> None:
        self._totals = [code.total.count for code in change.codes]
        self._has_samples = all(self._totals)
        lines = [line for section in change.sections for pair in section.lines for line in (pair.before, pair.after)]
        self._has_instructions = any(_instructions(line) for line in lines if line)
        self._width = max((len(str(line.number)) for line in lines if line), default=1)

    def header(self) -> Iterator[str]:
        names = [_INSTRUCTIONS] * self._has_instructions + [_SAMPLES] * self._has_samples
        if names:
            yield "  ".join(f"{name:^18}" for name in names).rstrip()
            yield "  ".join(f"{'before':>8}  {'after':>8}" for _ in names)

    def text(self, pair: LinePair) -> str:
        sides = (pair.before, pair.after)
        cells = [f"{_instructions(line) or '' if line else '':>8}" for line in sides] * self._has_instructions
        if self._has_samples:
            cells += [self._share(line, total) for line, total in zip(sides, self._totals, strict=True)]
        numbers = " ".join(f"{line.number if line else '':>{self._width}}" for line in sides)
        mark = " " if all(sides) else "-" if pair.before else "+"
        text = printable(next(line.text for line in (pair.after, pair.before) if line).expandtabs(4))
        return "  ".join([*cells, numbers, f"{mark} {text}"]).rstrip()

    def _share(self, line: SourceLine | None, total: float) -> str:
        return f"{share_text(line.samples.count / total) if line and line.samples.count else '':>8}"


def _opcode_lines(change: KernelChange, style: Style) -> Iterator[str]:
    shown = list(change.opcodes.items())[:_MAX_OPCODES]
    if not shown:
        return
    yield from ("", style.bold("instructions of the machine code, by name"))
    yield style.dim(f"{'before':>8}  {'after':>8}  {'change':>8}")
    yield _counts_text(*change.instructions, "all")
    for name, (before, after) in shown:
        yield _counts_text(before, after, name)
    if rest := len(change.opcodes) - len(shown):
        yield style.dim(f"{count_text(rest, 'more name')} with other counts: --json")


def _counts_text(before: int, after: int, name: str) -> str:
    return f"{before:>8,}  {after:>8,}  {after - before:>+8,}  {name}"
