"""A file of the program in a terminal: times before its lines, findings below them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

from bragg.analyze.program_lines import ProgramFile, ProgramLine
from bragg.analyze.report import finding_json
from bragg.model import Finding
from bragg.views.text.finding_text import gain_text, short_path
from bragg.views.text.style import Style, printable
from bragg.views.text.units import time_text

# Lines before and after one that was asked for.
_AROUND = 12
_MIN_WIDTH = 20
# Of a finding.
_N_WRAPPED = 8
# Lines whose backward pass is told, and the share of the run that it takes at least.
_N_BACKWARD, _LEAST_BACKWARD = 3, 0.01


def program_lines(program: ProgramFile, at: int, found: Sequence[Finding], style: Style) -> list[str]:
    """The file, or what is around a line of it.

    Args:
        program: It.
        at: The line; 0: all of it.
        found: Findings about the program.
        style: How to decorate, and the width to keep.
    """
    totals = ", ".join(f"{name} {time_text(total_ns)}" for name, total_ns in program.totals_ns.items())
    header = "".join(f"{name:>{_width(name)}}  " for name in program.totals_ns)
    shown = _shown(program, at)
    digits = max((len(str(line.number)) for line in shown), default=1)
    used = len(header) + digits + 2
    of_line = _by_line(program, found)
    lines = [f"{style.bold(short_path(program.file))}  of the whole run: {totals or 'no times were recorded'}"]
    lines += [style.dim(header.rstrip())] if header and shown else []
    for line in shown:
        times = "".join(f"{_time(line, name, total_ns, style)}  " for name, total_ns in program.totals_ns.items())
        text = printable(line.text.expandtabs(4))
        room = None if style.width is None else max(style.width - used, _MIN_WIDTH)
        lines.append(f"{times}{line.number:>{digits}}  {style.head(text, room)}".rstrip())
        indent = " " * (used + len(text) - len(text.lstrip()))
        for finding in of_line[line.number]:
            told = style.wrap(f"{indent}^ {_told(finding)}", _N_WRAPPED, f"{indent}  ")
            lines += map(style.warning, told)
    return [*lines, *map(style.dim, style.paragraphs(_backward_texts(program, shown)))]


def _backward_texts(program: ProgramFile, shown: Sequence[ProgramLine]) -> Iterator[str]:
    """Of each metric, which lines have much of the backward pass, though others run it."""
    for name, total_ns in program.totals_ns.items():
        much = [line for line in shown if line.backward_ns.get(name, 0.0) >= _LEAST_BACKWARD * total_ns]
        most = sorted(much, key=lambda line: -line.backward_ns[name])[:_N_BACKWARD]
        if most:
            told = ", ".join(f"{time_text(line.backward_ns[name])} at line {line.number}" for line in most)
            where = "stands at the lines of the forward pass, not at backward()"
            yield f"{name} of the backward pass {where}: {told}"


def program_json(program: ProgramFile, at: int, found: Sequence[Finding]) -> dict[str, Any]:
    """The same as values: times in ns."""
    of_line = _by_line(program, found)
    return {
        "program": program.file,
        "total": program.totals_ns,
        "lines": [
            {
                "number": line.number,
                "text": line.text,
                **line.times_ns,
                **({"backward": line.backward_ns} if line.backward_ns else {}),
                "findings": [finding_json(finding) for finding in of_line[line.number]],
            }
            for line in _shown(program, at)
        ],
    }


def _shown(program: ProgramFile, at: int) -> list[ProgramLine]:
    return [line for line in program.lines if not at or abs(line.number - at) <= _AROUND]


def _by_line(program: ProgramFile, found: Sequence[Finding]) -> dict[int, list[Finding]]:
    of_line: dict[int, list[Finding]] = defaultdict(list)
    for finding in found:
        if finding.file == program.file:
            of_line[finding.line].append(finding)
    return of_line


def _time(line: ProgramLine, name: str, total_ns: float, style: Style) -> str:
    """The time of a line, in the column of a metric; empty where there is none."""
    time_ns = line.times_ns.get(name, 0.0)
    width = _width(name)
    return style.heat(f"{time_text(time_ns):>{width}}", time_ns / total_ns) if time_ns else " " * width


def _width(name: str) -> int:
    return max(len(name), len("host_time"))


def _told(finding: Finding) -> str:
    saves = f"saves {gain_text(finding)}  " if finding.gain and finding.gain.wall_ns else ""
    return printable(f"{saves}{finding.rule}: {finding.text}")
