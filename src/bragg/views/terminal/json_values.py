"""Pieces of the JSON that the views share."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from bragg.model import FrameKind
from bragg.model.ids import FrameId
from bragg.views.terminal.columns import Column
from bragg.views.text.labels import Labels


def json_columns(columns: Sequence[Column]) -> list[dict[str, Any]]:
    """The metrics of a view; the total of one that does not add up is null."""
    return [{"name": column.name, "unit": column.unit, "total": _number(column.total)} for column in columns]


def json_frame(labels: Labels, frame: FrameId) -> dict[str, Any]:
    """Name, kind and place of a row; unknown places are null."""
    frames = labels.frames
    return {
        "name": labels.name(frame),
        "full_name": labels.full_name(frame),
        "kind": FrameKind(int(frames.kind[frame])).name.lower(),
        "file": frames.file[frame] or None,
        "line": int(frames.line[frame]) or None,
    }


def json_values(columns: Sequence[Column], row: int) -> dict[str, Any]:
    """The numbers of a row, in the units of the metrics; null where there is none, with the reason if it has one."""
    reasons = {column.name: reason for column in columns if (reason := column.why_absent(row))}
    return {
        "values": {column.name: _number(float(column.values[row])) for column in columns},
        "share": _number(columns[0].share(row)),
        **({"why_absent": reasons} if reasons else {}),
    }


def _number(value: float) -> float | int | None:
    if math.isnan(value):
        return None
    return int(value) if value.is_integer() else value
