"""Steps and regions of a training program as a track of the timeline, from what the recorder tells at its end."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bragg.formats.captured.chunks import ChunkType
from bragg.formats.captured.tables import CaptureTables, rows_of
from bragg.model import FrameKind, TrackKind

_META = "region_spans"
_TRACK = "training steps"


def add_region_slices(tables: CaptureTables) -> None:
    """Add a track with a slice for each step and each call of a region, as if the recorder had written it.

    `region_spans` of the meta goes; spans that were left out stay there as a number.
    """
    told = tables.meta.pop(_META, None)
    if not isinstance(told, Mapping):
        return
    if isinstance(left_out := told.get("left_out"), int) and left_out > 0:
        tables.meta["region_spans_left_out"] = left_out
    names, spans = _names(told), _spans(told)
    if spans is None or not tables.nodes.end or spans[0].max() >= len(names):
        return
    first_string = max(tables.strings, default=-1) + 1
    tables.strings.update(enumerate([*names, _TRACK], first_string))
    n, first_frame, first_node, track = len(names), tables.frames.end, tables.nodes.end, tables.tracks.end
    own = np.arange(n)
    tables.frames.add(first_frame, n, rows_of(ChunkType.FRAMES, n, kind=FrameKind.MARKER, name=first_string + own))
    tables.nodes.add(first_node, n, rows_of(ChunkType.NODES, n, parent=0, frame=first_frame + own))
    tables.tracks.add(track, 1, rows_of(ChunkType.TRACKS, 1, kind=TrackKind.RANGES, name=first_string + n))
    region, start_ns, duration_ns = spans
    tables.slices.append(
        rows_of(
            ChunkType.SLICES,
            len(region),
            start_ns=start_ns,
            duration_ns=duration_ns,
            node=first_node + region,
            track=track,
            correlation=0,
        )
    )


def _spans(told: Mapping[str, Any]) -> list[NDArray[np.int64]] | None:
    """Region, start and duration of each span; None when they are none."""
    columns = [told.get(name) for name in ("region", "start_ns", "duration_ns")]
    if not all(isinstance(column, list) and set(map(type, column)) == {int} for column in columns):
        return None
    try:
        region, steps, duration_ns = (np.array(column, np.int64) for column in columns)
    except OverflowError:
        return None
    start_ns = np.cumsum(steps)
    if not len(region) == len(start_ns) == len(duration_ns) or min(map(np.min, (region, start_ns, duration_ns))) < 0:
        return None
    ends = bool((start_ns <= np.iinfo(np.int64).max - duration_ns).all())
    return [region, start_ns, duration_ns] if ends else None


def _names(told: Mapping[str, Any]) -> list[str]:
    names = told.get("names")
    return list(map(str, names)) if isinstance(names, list) else []
