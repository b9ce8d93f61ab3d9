"""`bragg diff`: what changed between two recordings, or two sets of them."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from bragg.cli.completion import gates as completed_gates
from bragg.cli.completion import metrics
from bragg.cli.console import say, stream_style, write_json, write_lines
from bragg.cli.output_file import refuse_existing, write_text
from bragg.cli.profile_file import READABLE, as_named, loaded
from bragg.cli.progress import working
from bragg.cli.run_sets import set_name, short_names, two_sets

if TYPE_CHECKING:
    from bragg.model import Finding, Profile

__all__ = ["diff"]

_DEFAULT_ROWS = 30
_SMALL_BYTES = 8_000_000  # a timeline of 2 million slices: 0.5 s
_EPILOG = """\b
Examples:
  bragg diff before.bragg after.bragg
  bragg diff main-*.bragg branch-*.bragg --gate total --gate kernel:matmul
  bragg diff main/ branch/ --gate step --fail-over 2%

\b
--gate judges, and may be repeated:
  total         the metric of the whole program
  wall          the wall time of the run
  step          the time of training steps (bragg run --regions step)
  region:NAME   a region of training: data, forward, backward, optimizer
  path:NAME     all that runs in and below a function, scope or operator
  kernel:NAME   all launches of a kernel
  rows          every row of the table
"""


@click.command(epilog=_EPILOG)
@click.argument("files", nargs=-1, required=True, metavar="BEFORE... AFTER...", type=READABLE)
@click.option(
    "--by",
    type=click.Choice(["path", "kernel", "specialization"]),
    help="Compare call paths, kernels or specializations.  [path; of programs without common paths kernel]",
)
@click.option(
    "-m",
    "--metric",
    metavar="NAME",
    shell_complete=metrics,
    help="Compare this metric.  [gpu_time, without a GPU host_time]",
)
@click.option(
    "-n",
    "--lines",
    type=click.IntRange(min=0),
    metavar="N",
    help=f"Show the N largest changes; 0: all.  [{_DEFAULT_ROWS}]",
)
@click.option("--no-fold", is_flag=True, help="Show every frame of libraries.")
@click.option(
    "--gate",
    "gates",
    multiple=True,
    metavar="WHAT",
    shell_complete=completed_gates,
    help="Exit with code 5 if WHAT became slower, beyond noise: see below.  [total, with --fail-over]",
)
@click.option("--fail-over", metavar="PERCENT", help="Let what --gate judges grow by this share.  [0%]")
@click.option(
    "--floor",
    metavar="TIME",
    help="Let it grow up to this: 20us, or a number in the metric's unit.  [0, for rows 1% of the whole]",
)
@click.option(
    "--html", type=click.Path(path_type=Path), metavar="HTML", help="Also write a page with both flame graphs."
)
@click.option("--force", is_flag=True, help="Overwrite HTML.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object with all rows, or with --lines.")
def diff(
    files: tuple[Path, ...],
    by: str | None,
    metric: str | None,
    lines: int | None,
    no_fold: bool,
    gates: tuple[str, ...],
    fail_over: str | None,
    floor: str | None,
    html: Path | None,
    force: bool,
    as_json: bool,
) -> None:
    """Show what became slower or faster from BEFORE to AFTER, the largest change first.

    Both are profiles (.bragg), captures (.part) or files of other profilers. For several runs of each, as bragg run
    --repeat 10 makes them, give two directories, or files that are numbered: main-1.bragg main-2.bragg branch-1.bragg
    branch-2.bragg. Then each change has an interval, and a gate knows what is noise.
    """
    from bragg.analyze.comparing.compiled_changes import compiled_changes
    from bragg.analyze.comparing.diff import By, compare_sets
    from bragg.analyze.report import finding_json
    from bragg.cli.gate import Gates
    from bragg.views.terminal.columns import choose_names
    from bragg.views.text.analysis_text import changed_lines
    from bragg.views.text.compiled_text import compiled_lines
    from bragg.views.text.diff_text import diff_json, diff_lines
    from bragg.views.web.diff import pack_difference, unrelated_note

    judged = Gates.parse(gates, fail_over, floor)
    if html is not None:
        refuse_existing(html, force)
    sides = two_sets(files)
    names = [as_named(set_name(side)) for side in sides]
    before, after = ([loaded(file, trace=False) for file in side] for side in sides)
    name = choose_names(after[-1], [metric], ())[0] if metric else None
    folds = by in (None, "path") and not no_fold
    one, other = _folded(before, after) if folds else (before, after)
    with working("Comparing"):
        paths = comparison = compare_sets(one, other, By(by or "path"), name)
        # Gates and programs that read the answer count on paths.
        unrelated = by is None and not gates and not as_json and unrelated_note(paths)
        if unrelated:
            comparison = compare_sets(before, after, By.KERNEL, name)
        verdicts = judged.verdicts(comparison, before, after)
        changed, compiled = _changed(sides), compiled_changes(before[-1], after[-1])
    if as_json:
        table = diff_json(comparison, lines or None)
        gone, new = ([finding_json(each) for each in found] for found in changed)
        sides_json = {"before": names[0], "after": names[1]}
        told = {"findings": {"gone": gone, "new": new}, "compiled": [asdict(change) for change in compiled]}
        write_json("diff", {**sides_json, **table, **judged.to_json(verdicts), **told})
    else:
        max_rows = _DEFAULT_ROWS if lines is None else lines or None
        style = stream_style(sys.stdout)
        below = [*compiled_lines(compiled, style), *changed_lines(*changed, style)]
        notes = [style.dim(f"{unrelated}, so this compares what ran; call paths: --by path")] if unrelated else []
        write_lines([*notes, *diff_lines(comparison, style, max_rows), *below])
    if html is not None:
        with working(f"Making {html}"):
            if by not in (None, "path"):
                folded_before, folded_after = _folded(before, after)
                paths = compare_sets(folded_before, folded_after, By.PATH, comparison.metric)
            is_flat = by not in (None, "path") or unrelated
            flat = comparison if is_flat else compare_sets(before, after, By.KERNEL, comparison.metric)
            short = short_names(*names)
            packed = pack_difference(paths, flat, *short)
        _write_page(html, packed, " → ".join(short))
    judged.judge(verdicts, comparison)


def _folded(*sides: Sequence[Profile]) -> list[list[Profile]]:
    """Each side with its libraries put together: other runs may have more paths through them."""
    from bragg.views.text.folding import with_library_names

    return [[with_library_names(run) for run in side] for side in sides]


def _changed(sides: Sequence[Sequence[Path]]) -> tuple[list[Finding], list[Finding]]:
    """The findings that have gone and those that are new; of sets and of long timelines none."""
    from bragg.analyze.report import answered
    from bragg.views.text.analysis_text import changed_findings

    files = [file for side in sides for file in side]
    if len(files) != len(sides) or not all(file.is_file() and file.stat().st_size < _SMALL_BYTES for file in files):
        return [], []
    before, after = (answered(loaded(file)) for file in files)
    return changed_findings(before, after)


def _write_page(html: Path, packed: bytes, title: str) -> None:
    from bragg.views.text.units import bytes_text
    from bragg.views.web.page import page

    write_text(html, page([packed], title))
    say([f"Wrote {html} ({bytes_text(html.stat().st_size)})"])
