"""`bragg view` of a job: mean, worst and best rank of each row; or a row for each rank."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from bragg.analyze.across_ranks import MEAN, on_one_device, with_rank_values
from bragg.analyze.imports import imports_apart
from bragg.cli.console import stream_style, write_json, write_lines
from bragg.cli.jobs.opened import OpenedJob
from bragg.grouping.ranks import group_by_rank
from bragg.model.merge import merge_with_parts
from bragg.model.regroup import fold_specializations
from bragg.views.job.columns import RankFormulas, rank_columns
from bragg.views.job.header import job_header_lines
from bragg.views.terminal.columns import choose_names
from bragg.views.terminal.flat_view import flat_lines, flat_view
from bragg.views.terminal.tree_text import tree_lines
from bragg.views.terminal.tree_view import tree_view
from bragg.views.text.units import time_text

if TYPE_CHECKING:
    from bragg.model import Profile
    from bragg.views.terminal.view_options import ViewOptions


_WIDE = 150  # where the columns of numbers leave 60 for call paths
_SOME = ("worst", "worst_rank", "imbalance")


def view_job(opened: OpenedJob, options: ViewOptions, group_by: str, *, flat: bool, as_json: bool) -> None:
    """Write the view of a job to stdout.

    Args:
        opened: The job.
        options: What is wanted of it.
        group_by: `rank` for a row each; else as for a profile.
        flat: A table instead of a tree.
        as_json: One JSON object.

    Raises:
        UsageError: The metric does not add up, or is not there.
    """
    style = stream_style(sys.stdout)
    opened, note = _without_imports(opened, options)
    if group_by == "rank":
        profile = group_by_rank(opened.profiles, [rank.label for rank in opened.job.ranks])
        first = tuple(name for name in profile.metrics if name == opened.metric)
        rest = tuple(name for name in profile.metrics if name not in first)
        options = replace(options, metrics=options.metrics or first + rest, fold=False)
    else:
        profile, options = _compared(opened, options, group_by, None if as_json else style.width)
    tree = flat_view(profile, options) if flat else tree_view(profile, options)
    if as_json:
        write_json("job_flat" if flat else "job", {**_facts(opened), **tree.to_json()})
        return
    body = flat_lines(tree, style) if flat else tree_lines(tree, style)  # type: ignore[arg-type]
    notes = map(style.dim, style.paragraphs([note] if note else []))
    write_lines([*job_header_lines(opened.job, opened.profiles, style), *notes, "", *body])


def _without_imports(opened: OpenedJob, options: ViewOptions) -> tuple[OpenedJob, str]:
    """The job without what imports took where ranks have host time alone, and what to say of it; empty: nothing."""
    if options.metrics or options.sort or options.include or options.exclude:
        return opened, ""
    ran, imports_ns = zip(*map(imports_apart, opened.profiles), strict=True)
    if not any(imports_ns):
        return opened, ""
    mean = time_text(sum(imports_ns) / len(imports_ns))
    return replace(opened, profiles=list(ran)), f"imports took {mean} a rank and are left out; with them: -m host_time"


def _compared(opened: OpenedJob, options: ViewOptions, group_by: str, width: int | None) -> tuple[Profile, ViewOptions]:
    """All ranks as one profile, and the columns to show of it that fit into lines of a width."""
    profiles = map(on_one_device, opened.profiles)
    merged = merge_with_parts([fold_specializations(each) if group_by == "kernel" else each for each in profiles])
    is_wide = width is None or width >= _WIDE
    usual = (opened.metric, opened.metric.replace("time", "count"))[: 2 if is_wide else 1]
    asked = options.metrics or tuple(name for name in usual if name in merged.profile.metrics)
    name, *others = choose_names(merged.profile, asked, ("time", "count"), options.formulas)
    profile = with_rank_values(merged, [rank.rank for rank in opened.job.ranks], name)
    columns = rank_columns(name)
    if not is_wide:
        columns = [column for column in columns if column.removeprefix(f"{name}_") in _SOME]
    formulas = RankFormulas(name, options.formulas)
    sort = options.sort and choose_names(profile, [options.sort], (), formulas)[0] if options.sort != "name" else "name"
    means = (f"{other}{MEAN}" if f"{other}{MEAN}" in profile.metrics else other for other in others)
    metrics = (f"{name}{MEAN}", *columns, *means)
    return profile, replace(options, metrics=metrics, formulas=formulas, sort=sort)


def _facts(opened: OpenedJob) -> dict[str, Any]:
    job = opened.job
    return {
        "directory": str(job.directory),
        "run_id": job.run_id,
        "launcher": job.launcher,
        "world": job.world,
        "ranks": [rank.to_json() for rank in job.ranks],
        "problems": list(job.problems),
    }
