"""The text and the JSON of a comparison."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from bragg.analyze.comparison import Comparison
from bragg.model import FrameKind
from bragg.views.text.labels import Labels
from bragg.views.text.style import Style
from bragg.views.text.units import Scale, count_text, scale_for, share_text, value_text

__all__ = ["change_text", "diff_json", "diff_lines", "path_text"]

_LEAST_PATH_WIDTH = 20
# A narrow terminal has no room for averages.
_N_NARROW = 5
_HEADERS = ("change", "relative", "before", "after", "count", "avg before", "avg after")


def diff_lines(comparison: Comparison, style: Style, max_rows: int | None) -> list[str]:
    """The change of the whole, then a table of rows, and what it does not show.

    Args:
        comparison: What to show.
        style: How to decorate.
        max_rows: Rows of the table; None for all.
    """
    changed = [row for row in comparison.rows.tolist() if comparison.change[row]]
    shown = changed[:max_rows]
    total = f"{comparison.metric}: {change_text(comparison, 0)}"
    if not shown:
        return [style.bold(total), style.dim("no difference")]
    texts = _Texts(comparison, shown)
    n_columns = _N_NARROW if style.is_narrow else len(_HEADERS)
    cells = _without_empty_columns([row[:n_columns] for row in (texts.header(), *map(texts.cells, shown))])
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    numbers = ["  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in cells]
    room = None if style.width is None else max(style.width - len(numbers[0]) - 2, _LEAST_PATH_WIDTH)
    lines = [f"{text}  {path_text(comparison, row, style, room)}" for text, row in zip(numbers[1:], shown, strict=True)]
    n_hidden = len(changed) - len(shown)
    more = [style.dim(f"{count_text(n_hidden, 'row')} not shown; --lines 0 shows all")] if n_hidden else []
    return [style.bold(total), "", style.bold(f"{numbers[0]}  name"), *lines, *more]


def diff_json(comparison: Comparison, max_rows: int | None) -> dict[str, Any]:
    """JSON values: the same, with unchanged rows."""
    return {
        "metric": {"name": comparison.metric, "unit": comparison.unit},
        "total": _json_row(comparison, 0),
        "rows": [_json_row(comparison, row) for row in comparison.rows[:max_rows].tolist()],
    }


def change_text(comparison: Comparison, node: int) -> str:
    """`310 us before, 320 us after: +10.0 us (+3.2 %)`."""
    before, after, change = (
        value_text(float(values[node]), comparison.unit)
        for values in (comparison.before, comparison.after, comparison.change)
    )
    sign = "+" if comparison.change[node] > 0 else ""
    return f"{before} before, {after} after: {sign}{change} ({_relative_text(comparison, node)})"


def path_text(comparison: Comparison, node: int, style: Style, room: int | None) -> str:
    """The callers of a node and itself; the outermost are left out where there is no room."""
    names = _names(comparison, node)
    text = style.arrow.join(names)
    while room is not None and style.width_of(text) > room and len(names) > 1:
        names = names[1:]
        text = style.arrow.join([style.ellipsis, *names])
    return style.cut(text, room)


class _Texts:
    """The numbers of rows, each column in one unit."""

    def __init__(self, comparison: Comparison, rows: Sequence[int]) -> None:
        self._of = comparison
        self._averages = [
            np.divide(values, counts, out=np.full(len(values), np.nan), where=counts > 0)
            for values, counts in (
                (comparison.before, comparison.count_before),
                (comparison.after, comparison.count_after),
            )
        ]
        self._change = _scale(comparison, comparison.change[list(rows)])
        self._value = _scale(comparison, np.append(comparison.before[list(rows)], comparison.after[list(rows)]))
        self._average = _scale(comparison, np.concatenate([averages[list(rows)] for averages in self._averages]))

    def header(self) -> list[str]:
        units = [self._change.unit, "", self._value.unit, self._value.unit, "", *[self._average.unit] * 2]
        return [f"{name} {unit}".rstrip() for name, unit in zip(_HEADERS, units, strict=True)]

    def cells(self, row: int) -> list[str]:
        of = self._of
        change = self._change.text(float(of.change[row]))
        return [
            f"+{change}" if of.change[row] > 0 else change,
            _relative_text(of, row),
            self._value.text(float(of.before[row])),
            self._value.text(float(of.after[row])),
            _count_text(float(of.count_before[row]), float(of.count_after[row])),
            *(self._average.text(float(averages[row])) for averages in self._averages),
        ]


def _without_empty_columns(cells: list[list[str]]) -> list[list[str]]:
    columns = [column for column in zip(*cells, strict=True) if any(column[1:])]
    return [list(row) for row in zip(*columns, strict=True)]


def _scale(comparison: Comparison, values: Any) -> Scale:
    return scale_for(comparison.unit, float(np.nanmax(np.abs(values), initial=0.0)))


def _relative_text(comparison: Comparison, node: int) -> str:
    relative = comparison.relative(node)
    if math.isinf(relative):
        return "new"
    if relative == -1:
        return "gone"
    return f"{'+' if relative > 0 else '-' if relative < 0 else ''}{share_text(abs(relative))}"


def _count_text(before: float, after: float) -> str:
    texts = ["" if math.isnan(count) else f"{count:,.0f}" for count in (before, after)]
    return texts[0] if texts[0] == texts[1] else f"{texts[0] or 0} > {texts[1] or 0}"


def _names(comparison: Comparison, node: int) -> list[str]:
    labels = Labels(comparison.tree.frames)
    return [labels.text(int(comparison.tree.frame[step])) for step in comparison.tree.path(node)[1:]] or ["total"]


def _json_row(comparison: Comparison, node: int) -> dict[str, Any]:
    frames = comparison.tree.frames
    frame = int(comparison.tree.frame[node])
    relative = comparison.relative(node)
    return {
        "path": _names(comparison, node),
        "full_name": Labels(frames).full_name(frame),
        "kind": FrameKind(int(frames.kind[frame])).name.lower(),
        "before": float(comparison.before[node]),
        "after": float(comparison.after[node]),
        "change": float(comparison.change[node]),
        "relative": None if math.isinf(relative) else relative,
        "count_before": _or_none(float(comparison.count_before[node])),
        "count_after": _or_none(float(comparison.count_after[node])),
    }


def _or_none(value: float) -> float | None:
    return None if math.isnan(value) else value
