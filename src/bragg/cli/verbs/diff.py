"""`bragg diff`: what changed between two recordings."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from bragg.cli.console import say, stream_style, write_json, write_lines
from bragg.cli.output_file import refuse_existing, write_text
from bragg.errors import GateExceeded, UsageError

if TYPE_CHECKING:
    from bragg.analyze.comparison import Comparison
    from bragg.analyze.diff import Gate

__all__ = ["diff"]

_DEFAULT_ROWS = 30
_NUMBER = re.compile(r"(?P<number>\d+(?:\.\d+)?|\.\d+) ?(?P<unit>\D*)")
_TIMES_NS = {"ns": 1, "us": 1_000, "ms": 1_000_000, "s": 1_000_000_000}
_EPILOG = """\b
Examples:
  bragg diff before.bragg after.bragg
  bragg diff main.bragg branch.bragg --by kernel --fail-over 5% --floor 20us
"""


@click.command(epilog=_EPILOG)
@click.argument("before", type=click.Path(path_type=Path))
@click.argument("after", type=click.Path(path_type=Path))
@click.option(
    "--by",
    type=click.Choice(["path", "kernel", "specialization"]),
    default="path",
    help="Compare call paths, kernels or specializations.  [path]",
)
@click.option("-m", "--metric", metavar="NAME", help="Compare this metric.  [gpu_time, without a GPU host_time]")
@click.option(
    "-n",
    "--lines",
    type=click.IntRange(min=0),
    metavar="N",
    help=f"Show the N largest changes; 0: all.  [{_DEFAULT_ROWS}]",
)
@click.option("--no-fold", is_flag=True, help="Show every frame of libraries.")
@click.option("--fail-over", metavar="PERCENT", help="Exit with code 5 if something grew by more than this share.")
@click.option("--floor", metavar="TIME", help="Ignore growth up to this: 20us, or a number in the metric's unit.")
@click.option(
    "--html", type=click.Path(path_type=Path), metavar="HTML", help="Also write a page with both flame graphs."
)
@click.option("--force", is_flag=True, help="Overwrite HTML.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object with all rows, or with --lines.")
def diff(
    before: Path,
    after: Path,
    by: str,
    metric: str | None,
    lines: int | None,
    no_fold: bool,
    fail_over: str | None,
    floor: str | None,
    html: Path | None,
    force: bool,
    as_json: bool,
) -> None:
    """Show what became slower or faster from BEFORE to AFTER, the largest change first.

    Both are profiles (.bragg), captures (.part) or files of other profilers.
    """
    from bragg import formats
    from bragg.analyze.diff import By, compare
    from bragg.views.terminal.columns import choose_names
    from bragg.views.text.diff_text import diff_json, diff_lines
    from bragg.views.text.folding import with_library_names

    limits = _limits(fail_over, floor)
    if html is not None:
        refuse_existing(html, force)
    one, other = (formats.load(file, trace=False) for file in (before, after))
    name = choose_names(other, [metric], ())[0] if metric else None
    folds = by == "path" and not no_fold
    before_shown, after_shown = map(with_library_names, (one, other)) if folds else (one, other)
    comparison = compare(before_shown, after_shown, By(by), name)
    exceeded = [] if limits is None else _gate(*limits, comparison).exceeded(comparison).tolist()
    if as_json:
        shown = diff_json(comparison, lines or None)
        write_json("diff", {"before": str(before), "after": str(after), **shown, "n_exceeded": len(exceeded)})
    else:
        max_rows = _DEFAULT_ROWS if lines is None else lines or None
        write_lines(diff_lines(comparison, stream_style(sys.stdout), max_rows))
    if html is not None:
        from bragg.views.web.diff import pack_difference

        paths = compare(one, other, By.PATH, comparison.metric)
        flat = compare(one, other, By.KERNEL, comparison.metric) if by == "path" else comparison
        _write_page(html, pack_difference(paths, flat, before.name, after.name), f"{before.name} → {after.name}")
    if exceeded:
        raise GateExceeded(_exceeded_text(comparison, exceeded, fail_over or "", floor))


def _write_page(html: Path, packed: bytes, title: str) -> None:
    from bragg.views.text.units import bytes_text
    from bragg.views.web.page import page

    write_text(html, page([packed], title))
    say([f"Wrote {html} ({bytes_text(html.stat().st_size)})"])


def _exceeded_text(comparison: Comparison, exceeded: list[int], fail_over: str, floor: str | None) -> str:
    """The worst of what grew too much; the whole only when nothing else did."""
    from bragg.views.text.diff_text import change_text, path_text

    worst = next((node for node in exceeded if node), 0)
    n_more = sum(1 for node in exceeded if node not in (0, worst))
    name = path_text(comparison, worst, stream_style(sys.stderr), None)
    limit = f"the limit of {fail_over.strip().rstrip('%')} %" + (f" and {floor}" if floor else "")
    more = f"; {n_more} more" if n_more else ""
    return f"{name} is over {limit}: {comparison.metric} {change_text(comparison, worst)}{more}"


def _limits(fail_over: str | None, floor: str | None) -> tuple[float, float, str] | None:
    """Percent, floor and the floor's unit, empty for that of the metric; None: everything may grow."""
    if fail_over is None:
        if floor is not None:
            raise UsageError("--floor needs --fail-over", hint="For example: --fail-over 5% --floor 20us")
        return None
    percent, _ = _number("--fail-over", fail_over, ("%",))
    return (percent, *_number("--floor", floor or "0", tuple(_TIMES_NS)))


def _gate(percent: float, floor: float, floor_unit: str, comparison: Comparison) -> Gate:
    from bragg.analyze.diff import Gate

    if not floor_unit:
        return Gate(percent, floor)
    if comparison.unit not in _TIMES_NS:
        raise UsageError(
            f"{comparison.metric} is not a time, so --floor takes no unit", hint=f"For example: --floor {floor:g}"
        )
    return Gate(percent, floor * _TIMES_NS[floor_unit] / _TIMES_NS[comparison.unit])


def _number(option: str, text: str, units: tuple[str, ...]) -> tuple[float, str]:
    match = _NUMBER.fullmatch(text.strip())
    unit = match["unit"].strip() if match else ""
    if match is None or unit not in ("", *units):
        known = ", ".join(f"5{unit}" for unit in units)
        raise UsageError(f"{option}: {text!r} is not a number with a known unit", hint=f"For example: {known}")
    return float(match["number"]), unit
