"""`bragg view`: where the time went."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

import click

from bragg.cli.completion import metrics
from bragg.cli.console import stream_style, write_json, write_lines
from bragg.cli.profile_file import loaded, newest_profile_or_job, readable_argument
from bragg.cli.shown_part import PARTS, part_without_imports, shown_part
from bragg.errors import UsageError
from bragg.views.terminal.derived_metrics import DERIVED, prepared
from bragg.views.terminal.grouping import WHOLE, grouped
from bragg.views.terminal.idle_view import idle_options, with_idle_time

if TYPE_CHECKING:
    from bragg.analyze.causes.evidence import Evidence
    from bragg.model import Profile
    from bragg.views.terminal.profile_view import ShownProfile
    from bragg.views.terminal.view_options import ViewOptions


_DEFAULT_LINES = 60
_SMALL_BYTES = 8_000_000  # a timeline of 2 million slices: 0.5 s
_BY_RANK = "rank"
_CODE_FORMATS = ("full", "file_function_line", "function_line", "file_function")
_EPILOG = """\b
Examples:
  bragg view train.bragg --flat --metric gpu_time,gpu_count,avg
  bragg view trace.bragg --idle
  bragg view train.job --group-by rank
"""


@click.command(epilog=_EPILOG)
@readable_argument
@click.option("--flat", is_flag=True, help="Show a table by kernel or function instead of a tree.")
@click.option(
    "-l", "--list", "list_only", is_flag=True, help="List the metrics of FILE and those that can be computed, and exit."
)
@click.option(
    "-m",
    "--metric",
    "--metrics",
    default="",
    metavar="NAME[,NAME]",
    shell_complete=metrics,
    help="Show these metrics; the first one decides what is hot.",
)
@click.option("-i", "--include", metavar="REGEX", help="Show only call paths through names that match.")
@click.option(
    "-e", "--exclude", metavar="REGEX", help="Leave out call paths through names that match, also from totals."
)
@click.option(
    "-t",
    "--threshold",
    type=click.FloatRange(0, 100),
    default=0.0,
    metavar="PERCENT",
    help="Hide rows below this share of the total.",
)
@click.option("--least", default=0.0, metavar="VALUE", help="Hide rows below this value of the first metric.")
@click.option("-d", "--depth", type=click.IntRange(min=0), metavar="N", help="Show at most N levels of the tree.")
@click.option(
    "-n",
    "--lines",
    type=click.IntRange(min=0),
    metavar="N",
    help=f"Show the N hottest rows; 0: all.  [{_DEFAULT_LINES}]",
)
@click.option(
    "-s",
    "--sort",
    metavar="NAME",
    shell_complete=metrics,
    help="Sort by this metric instead of the first, or by `name`.",
)
@click.option(
    "--group-by",
    type=click.Choice(["kernel", "specialization", *WHOLE, _BY_RANK]),
    default="specialization",
    help="Add up by kernel (all its specializations), by module, region of training, process, or rank of a job.  "
    "[specialization]",
)
@click.option("--rank", metavar="N", help="Show one rank of a job: its number, worst, best or median.")
@click.option("--part", type=click.Choice(PARTS), help="Show only the steady state, or the whole run.")
@click.option("--idle", is_flag=True, help="Show what the host did while GPUs were idle.")
@click.option(
    "--least-pause",
    "least_pause_us",
    type=click.FloatRange(min=0),
    metavar="US",
    help="Show pauses shorter than this as one row of --idle; needs a timeline.  [3]",
)
@click.option("-f", "--format", "code", type=click.Choice(_CODE_FORMATS), help="Choose how places in code are written.")
@click.option("--print-sorted", is_flag=True, help="Print the table of --flat below the tree.")
@click.option(
    "-diff",
    "--diff-profile",
    "before",
    type=click.Path(path_type=Path),
    metavar="FILE0",
    help="Subtract the values of FILE0. See also: bragg diff.",
)
@click.option("--full-names", is_flag=True, help="Do not shorten kernel names and paths.")
@click.option("--keep", metavar="REGEX", help="Keep frames of libraries that match, as those of models are.")
@click.option("--no-fold", is_flag=True, help="Show each frame of libraries, and each caller, on its own line.")
@click.option("--tui", is_flag=True, help="Browse the tree in the terminal; needs bragg[tui].")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object with all rows, or with --lines.")
def view(
    file: Path | None,
    flat: bool,
    list_only: bool,
    print_sorted: bool,
    before: Path | None,
    tui: bool,
    as_json: bool,
    **choices: Any,
) -> None:
    """Show where the time of FILE went, hottest first.

    FILE is a profile (.bragg), a capture (.part), a file of another profiler, or the directory of a job: of that each
    row shows the mean of the ranks, the worst and the best. The default is the newest profile in this directory.
    """
    if as_json and (tui or print_sorted):
        raise UsageError("--json is one view", hint="For the table of --print-sorted: bragg view --flat --json")
    path = newest_profile_or_job(file)
    options = _view_options(choices, default_lines=0 if as_json else _DEFAULT_LINES)
    group_by, is_job = choices["group_by"], path.is_dir()
    if is_job:
        of_one_rank = tui or list_only or print_sorted or before or choices["idle"] or choices["part"]
        if choices["rank"] is None and group_by not in WHOLE and not of_one_rank:
            _view_job(path, options, group_by, flat, as_json)
            return
        from bragg.cli.jobs.opened import one_rank

        path = one_rank(path, choices["rank"])
    if group_by == _BY_RANK or (choices["rank"] and not is_job):
        raise UsageError(f"{path} is the profile of one process", hint="Give the directory of a job")
    if choices["idle"]:
        options = idle_options(options, group_by)
    recorded = _load(path, choices, options)
    if list_only and not tui:
        _write_list(recorded, path, as_json)
    elif before is not None and not tui:
        if group_by in WHOLE:
            raise UsageError(f"--group-by {group_by} shows one profile at a time")
        if flat or print_sorted:
            raise UsageError("-diff shows a tree, not this view", hint="For a table try: bragg diff --by kernel")
        _write_difference(_load(before, choices, options), recorded, path, options, as_json)
    else:
        _show(recorded, path, options, choices, _Form(flat, print_sorted, tui, as_json))


@dataclass(frozen=True)
class _Form:
    """How a profile is shown: as a tree or a table, a table below the tree, in a terminal to browse, as JSON."""

    flat: bool
    print_sorted: bool
    tui: bool
    as_json: bool


def _show(recorded: Profile, path: Path, options: ViewOptions, choices: Mapping[str, Any], form: _Form) -> None:
    from bragg.analyze.causes.evidence import Evidence
    from bragg.views.terminal.profile_view import flat_table, profile_json, profile_lines
    from bragg.views.terminal.story import answer_lines

    evidence, style = Evidence(recorded), stream_style(sys.stdout)
    is_asked = any(choices[name] for name in ("include", "exclude", "metric", "idle", "part"))
    is_answered = not (is_asked or choices["group_by"] in WHOLE or form.as_json or form.tui)
    answer = answer_lines(evidence, style) if is_answered else []
    is_narrow = style.is_narrow and not form.as_json
    said = " ".join(" ".join(answer).split())
    shown = _shown(evidence, path, options, choices, is_narrow=is_narrow, said=said, by_kernel=form.flat)
    if form.tui:
        from bragg.cli.tui import run_tui

        run_tui(shown.profile, shown.source, shown.options)
        return
    if form.as_json:
        write_json("flat" if form.flat else "tree", profile_json(shown, flat=form.flat))
        return
    more = [f"why, and what else to change: bragg analyze {quote(str(path))}"] if answer else []
    lines = profile_lines(shown, style, flat=form.flat, answer=answer)
    write_lines([*lines, *map(style.dim, style.paragraphs([*shown.hints, *more]))])
    if form.print_sorted and not form.flat:
        write_lines(["", *flat_table(shown, style)])


def _shown(
    evidence: Evidence,
    path: Path,
    options: ViewOptions,
    choices: Mapping[str, Any],
    *,
    is_narrow: bool,
    said: str,
    by_kernel: bool,
) -> ShownProfile:
    """The profile by call paths, or by what it consists of; the part of the run that answers where the time went.

    Hints leave out what was said before.
    """
    from bragg.analyze.engine import findings
    from bragg.views.terminal.profile_view import ShownProfile

    recorded, whole = evidence.profile, evidence.recorded
    group_by, part = choices["group_by"], choices["part"]
    if group_by in WHOLE:
        if part == "steady" and group_by != "module":
            hint = "What a steady step consists of: bragg view, without --part"
            raise UsageError(f"--group-by {group_by} shows the whole run", hint=hint)
        ran = part_without_imports(recorded, options) if group_by == "module" and not part else None
        ran = shown_part(evidence, options, part) if part == "steady" else ran
        profile, options, hints = grouped(ran.profile if ran else recorded, options, group_by, is_narrow=is_narrow)
        return ShownProfile(profile, str(path), options, whole, ran.notes if ran else (), hints, part)
    is_filtered = options.include or options.exclude
    hints = [] if is_filtered else [found.text for found in findings(evidence) if found.message not in said]
    if choices["idle"]:
        return ShownProfile(recorded, str(path), options, whole, (), hints, part)
    best = shown_part(evidence, options, part, by_kernel=by_kernel)
    return ShownProfile(best.profile, str(path), best.options, whole, best.notes, hints, part)


def _view_job(directory: Path, options: ViewOptions, group_by: str, flat: bool, as_json: bool) -> None:
    from bragg.cli.jobs.opened import open_job, say_problems
    from bragg.cli.jobs.viewed import view_job

    opened = open_job(directory)
    say_problems(opened.job)
    view_job(opened, options, group_by, flat=flat, as_json=as_json)


def _load(path: Path, choices: Mapping[str, Any], options: ViewOptions) -> Profile:
    """A profile with what the chosen metrics need, and with its timeline unless that takes long to read."""
    from bragg.model.regroup import fold_specializations

    is_small = path.is_file() and path.stat().st_size < _SMALL_BYTES
    profile = with_idle_time(loaded(path, trace=choices["idle"] or is_small), choices)
    profile = prepared(profile, [*options.metrics, options.sort or ""])
    return fold_specializations(profile) if choices["group_by"] == "kernel" else profile


def _write_list(profile: Profile, path: Path, as_json: bool) -> None:
    from bragg.views.terminal.metric_list import metric_list_json, metric_list_lines

    if as_json:
        write_json("metrics", {"file": str(path), **metric_list_json(profile, DERIVED)})
    else:
        write_lines(metric_list_lines(profile, DERIVED, stream_style(sys.stdout)))


def _write_difference(before: Profile, after: Profile, path: Path, options: ViewOptions, as_json: bool) -> None:
    from bragg.model.difference import aligned
    from bragg.views.terminal.header import header_lines
    from bragg.views.terminal.tree_text import tree_lines
    from bragg.views.terminal.tree_view import tree_view
    from bragg.views.text.run_facts import RunFacts

    one, other = aligned(before, after)
    shown = tree_view(other, options, before=one)
    if as_json:
        write_json("difference", {"file": str(path), "meta": after.meta, **shown.to_json()})
    else:
        style = stream_style(sys.stdout)
        write_lines([*header_lines(RunFacts.of(after), str(path), style), "", *tree_lines(shown, style)])


def _view_options(choices: Mapping[str, Any], default_lines: int) -> ViewOptions:
    from bragg.views.terminal.filters import compiled
    from bragg.views.terminal.view_options import ViewOptions
    from bragg.views.text.labels import CodeFormat

    lines = default_lines if choices["lines"] is None else choices["lines"]
    return ViewOptions(
        metrics=tuple(name.strip() for name in choices["metric"].split(",") if name.strip()),
        sort=choices["sort"],
        include=choices["include"],
        exclude=choices["exclude"],
        threshold=choices["threshold"] / 100,
        least=choices["least"],
        max_depth=choices["depth"],
        max_lines=lines or None,
        full_names=choices["full_names"],
        fold=not choices["no_fold"],
        keep=(compiled("--keep", choices["keep"]),) if choices["keep"] else (),
        code=CodeFormat(choices["code"]) if choices["code"] else None,
        formulas=DERIVED,
    )
