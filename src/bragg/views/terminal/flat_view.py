"""A profile as a table of what ran, wherever it was called from."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bragg.errors import NothingRecorded
from bragg.model import CallTree, FrameKind, Profile
from bragg.model.host_time import waiting_nodes
from bragg.model.ids import FrameId
from bragg.model.regroup import regroup
from bragg.model.table import Int64Array
from bragg.views.terminal.columns import Column, ColumnChoice, absence_notes, columns_of
from bragg.views.terminal.filters import filter_paths
from bragg.views.terminal.json_values import json_columns, json_frame, json_values
from bragg.views.terminal.launch_times import LaunchTimes, with_launch_times
from bragg.views.terminal.number_table import NumberTable
from bragg.views.terminal.view_options import ViewOptions
from bragg.views.text.cutting import cut_apart
from bragg.views.text.labels import Labels
from bragg.views.text.style import Style, printable
from bragg.views.text.units import count_text, share_text, time_text
from bragg.views.text.variants import rows_of_frames

_NARROW_METRICS = ("time", "count", "time_avg", "time_max")
_DEFAULT_METRICS = ("time", "count", "time_avg", "time_p50", "time_p95", "time_max", "time_first")
_LEAST_NAME_WIDTH = 16


@dataclass(frozen=True, eq=False)
class FlatView:
    """Rows of a table, to be written as text or as JSON.

    Attributes:
        frames: int64 [n_rows], frame that each row is named after: of code that of its hottest line.
        columns: Own values, [n_rows]; the first has shares.
        shown: int64, rows to show, hottest first.
        n_hidden: Rows with a value that are not shown.
        is_cut: More lines would show more.
        labels: Names of the frames.
        notes: What filters left out, one line each.
    """

    frames: Int64Array
    columns: list[Column]
    shown: Int64Array
    n_hidden: int
    is_cut: bool
    labels: Labels
    notes: list[str]

    def to_json(self) -> dict[str, Any]:
        """JSON values: rows in the order of the text."""
        return {
            "metrics": json_columns(self.columns),
            "rows": [
                {**json_frame(self.labels, FrameId(int(self.frames[row]))), **json_values(self.columns, row)}
                for row in self.shown.tolist()
            ],
            "hidden_rows": self.n_hidden,
            "notes": self.notes,
        }


def default_metrics(style: Style, wide: Sequence[str] = _DEFAULT_METRICS) -> Sequence[str]:
    """The metrics that a terminal has room for, beside names.

    Args:
        style: Of the terminal.
        wide: Those of a wide one.
    """
    return _NARROW_METRICS[:1] if style.is_slim else _NARROW_METRICS if style.is_narrow else wide


def flat_view(profile: Profile, options: ViewOptions, defaults: Sequence[str] = _DEFAULT_METRICS) -> FlatView:
    """Add up the own values of everything of the same kind, name and file; of sampled kernels by line.

    Args:
        profile: What to show.
        options: How.
        defaults: Metrics to show when the options name none, see `choose_names`.

    Raises:
        UsageError: An unknown metric, a malformed expression.
        NothingRecorded: Nothing matches, or what matches has no value of the metric.
    """
    formulas = with_launch_times(options.formulas)
    choice = ColumnChoice.of(profile, options.metrics, defaults, options.sort, formulas)
    filtered = filter_paths(profile, options.include, options.exclude, choice.sort)
    table, times = _table(
        _without_instructions(filtered.profile, choice.sort, options), options.full_names, choice.sort
    )
    choice = replace(choice, formulas=with_launch_times(options.formulas, times))
    column = choice.sort_column(table)
    weight = np.nan_to_num(column.values)
    weight[0] = 0.0
    waited = weight * waiting_nodes(table.tree) if column.name == "host_time" else np.zeros(len(weight))
    if not waited.any() or waited.sum() == weight.sum():
        notes = filtered.notes
    else:
        weight, notes = weight - waited, [*filtered.notes, _waited_note(waited.sum(), weight.sum())]
    heavy = np.flatnonzero((weight > 0) & (weight >= max(options.threshold * weight.sum(), options.least)))
    if not len(heavy):
        raise NothingRecorded(f"nothing to show: {choice.sort} is zero everywhere", hint="Choose another with --metric")
    labels = Labels(table.tree.frames, options.full_names, options.code, with_device=False)
    shown = heavy[np.argsort(-weight[heavy], kind="stable")][: options.max_lines]
    if options.sort == "name":
        shown = np.array(sorted(shown.tolist(), key=lambda row: labels.text(table.tree.frame_of(row))), np.int64)
    return FlatView(
        table.tree.frame.astype(np.int64),
        choice.columns(table),
        shown,
        n_hidden=int((weight > 0).sum()) - len(shown),
        is_cut=len(shown) < len(heavy),
        labels=labels,
        notes=notes,
    )


def _waited_note(waited_ns: float, all_ns: float) -> str:
    share = share_text(waited_ns / all_ns)
    return f"{time_text(waited_ns)}, {share} of host_time, was waiting and has no row; where: --metric wait_time"


def flat_lines(view: FlatView, style: Style) -> list[str]:
    """The table, and what it does not show."""
    return [*table_lines(view, style), *map(style.dim, style.paragraphs(_notes(view)))]


def table_lines(view: FlatView, style: Style, title: str = "name") -> list[str]:
    """Column headers, of which the last is `title`, and one line for each row."""
    numbers = NumberTable(view.columns, view.shown.tolist(), style)
    room = None if style.width is None or view.labels.full else max(style.width - numbers.width - 2, _LEAST_NAME_WIDTH)
    names = cut_apart(
        [view.labels.own_text(FrameId(int(view.frames[row]))) for row in view.shown.tolist()], room, style
    )
    rows = zip(view.shown.tolist(), names, strict=True)
    return [
        style.bold(f"{numbers.header()}  {style.cut(title, room)}"),
        *(f"{numbers.text(row)}  {name}" for row, name in rows),
    ]


def _notes(view: FlatView) -> list[str]:
    notes = [*view.notes, *absence_notes(view.columns, view.shown.tolist())]
    if not view.n_hidden:
        return notes
    first = view.columns[0]
    share = 1 - sum(map(first.share, view.shown.tolist()))
    of_total = "" if math.isnan(share) else f", {share_text(max(share, 0.0))} of {printable(first.name)}"
    way_out = "; --lines 0 shows all" if view.is_cut else ""
    return [*notes, f"{count_text(view.n_hidden, 'row')} not shown{of_total}{way_out}"]


def _table(profile: Profile, full_names: bool, sort: str) -> tuple[Profile, LaunchTimes]:
    """The rows as nodes below a root without values of its own, and how long launches took by row."""
    frames, row_of_node = _rows(profile, full_names)
    if sort in profile.metrics:
        frames = _hottest_lines(profile, frames, row_of_node, profile.own(sort))
    row_of_node = row_of_node + 1
    n_rows = len(frames) + 1
    tree = CallTree(
        np.concatenate([[-1], np.zeros(len(frames), np.int32)]),
        np.concatenate([profile.tree.frame[:1], frames]),
        profile.tree.frames,
    )
    metrics = {name: metric.gather(row_of_node, n_rows) for name, metric in profile.metrics.items()}
    return Profile(profile.meta, tree, metrics), LaunchTimes.of(profile, row_of_node, n_rows)


def _without_instructions(profile: Profile, sort: str, options: ViewOptions) -> Profile:
    """Instructions as their lines where samples decide which rows are hot; else lines too as their kernels."""
    tree = profile.tree
    is_line = tree.kind == FrameKind.LINE
    if not is_line.any():
        return profile
    is_of_nodes = sort in profile.metrics or options.formulas.knows(sort)
    if is_of_nodes and np.nan_to_num(columns_of(profile, [sort], options.formulas)[0].values)[is_line].any():
        is_line &= np.array([not file for file in tree.frames.file])[tree.frame]
    return regroup(tree, folded=is_line).apply(profile)


def _hottest_lines(profile: Profile, frames: Int64Array, row_of_node: Int64Array, own: NDArray[Any]) -> Int64Array:
    """The frames of rows, of functions with several lines that of the line with the largest own value."""
    weight = np.zeros(len(profile.tree.frames))
    np.add.at(weight, profile.tree.frame, np.nan_to_num(own))
    row_of_frame = np.full(len(weight), -1, np.int64)
    row_of_frame[profile.tree.frame] = row_of_node
    order = np.lexsort((weight, row_of_frame))
    last = order[np.append(row_of_frame[order][1:] != row_of_frame[order][:-1], True)]
    last = last[row_of_frame[last] >= 0]
    hottest = frames.copy()
    hottest[row_of_frame[last]] = last
    is_code = (profile.tree.frames.kind[frames] == FrameKind.PYTHON) & (weight[hottest] > 0)
    return np.where(is_code, hottest, frames)


def _rows(profile: Profile, full_names: bool) -> tuple[Int64Array, Int64Array]:
    """The frame that names each row, and the row of each node."""
    same = rows_of_frames(profile.tree.frames, full_names)
    rows, row_of_node = np.unique(same[profile.tree.frame], return_inverse=True)
    return rows, row_of_node.reshape(-1)
