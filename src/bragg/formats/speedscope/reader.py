"""Reading speedscope JSON: of py-spy, rbspy, speedscope itself, and bragg's own exports.

Each profile of a file is the stacks of one thread in order of time, as samples or as frames that open and close. Where
it counts time it becomes slices of a track too. bragg's own files begin with a flame graph for each metric.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from bragg.formats.encodings.deep_json import loads
from bragg.formats.files import read_content
from bragg.formats.format import damaged, unknown_format
from bragg.formats.limits import Limits
from bragg.formats.timelines.call_tree import Frames, Nodes
from bragg.model import FrameKind, FrameTable, Metric, MetricKind, Profile, SliceTable, TrackKind, TrackTable

_MAX_NS = float(1 << 61)
_NS_OF_UNIT = {"nanoseconds": 1.0, "microseconds": 1e3, "milliseconds": 1e6, "seconds": 1e9}
_UNITS = {"bytes": "B", "none": "1"}
_NAMES = {"B": "bytes", "1": "samples"}
# Flame graphs in bragg's own files are called like the metric.
_OWN_UNITS = {"nanoseconds": "ns", "bytes": "B", "none": "1"}


def is_speedscope(start: bytes) -> bool:
    """Whether a file may be one of speedscope: an object with its schema, or with `shared` frames."""
    keys = (b"www.speedscope.app/file-format-schema", b'"shared"')
    return start.lstrip().startswith(b"{") and any(key in start for key in keys)


def read(path: Path, *, trace: bool = True) -> Profile:
    """Read a speedscope file, compressed with gzip or not.

    Raises:
        BadFile: The file is damaged, too large, or JSON of another kind.
    """
    content = read_content(path)
    try:
        document = loads(content, Limits.of(path))
        if not isinstance(document, dict) or not {"shared", "profiles"} <= document.keys():
            raise unknown_format(path)
        profile = _Document(document).profile(trace)
        profile.check()
    except (ValueError, OverflowError) as error:
        raise damaged(path, error, "Export it again") from error
    return profile


class _Document:
    """A file as rows of a profile."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self._frames, self._nodes = Frames(), Nodes()
        self._exporter = str(document.get("exporter", ""))
        shared = document["shared"]
        frames = shared.get("frames") if isinstance(shared, dict) else None
        self._frame_ids = [self._frame_id(frame) for frame in _list(frames, "frames")]
        self._values: dict[tuple[str, str], dict[int, float]] = {}
        self._slices: list[tuple[int, int, int, int]] = []
        self._tracks: list[str] = []
        for part in _list(document["profiles"], "profiles"):
            self._add(_object(part, "profile"))

    def _frame_id(self, frame: Any) -> int:
        frame = _object(frame, "frame")
        name, file, line = str(frame.get("name", "")), frame.get("file"), frame.get("line")
        if not isinstance(file, str) or not file:
            return self._frames.id(FrameKind.SCOPE, name)
        line = line if isinstance(line, int) and 0 < line < 1 << 31 else 0
        return self._frames.id(FrameKind.PYTHON if file.endswith(".py") else FrameKind.NATIVE, name, file, line)

    def _add(self, part: dict[str, Any]) -> None:
        unit, name = str(part.get("unit", "none")), str(part.get("name", ""))
        if unit not in _NS_OF_UNIT and unit not in _UNITS:
            raise ValueError(f"unit {unit!r} is unknown")
        scale = _NS_OF_UNIT.get(unit, 1.0)
        is_own_metric = self._exporter == "bragg" and name.isidentifier() and part.get("startValue") == 0
        metric = (name, _OWN_UNITS[unit]) if is_own_metric else _metric_of(unit)
        has_timeline = unit in _NS_OF_UNIT and not is_own_metric
        if has_timeline:
            self._tracks.append(name)
        # A timeline of bragg repeats what its flame graphs count.
        values = {} if has_timeline and self._exporter == "bragg" else self._values.setdefault(metric, {})
        stretches = _sampled(part) if part.get("type") == "sampled" else _evented(part)
        self._add_stretches(stretches, scale, values, has_timeline)

    def _add_stretches(
        self, stretches: Iterator[_Stretch], scale: float, values: dict[int, float], timed: bool
    ) -> None:
        """Values of the innermost nodes of stacks, and slices while a frame is on them."""
        # The nodes of the stack, and since when each is on it.
        path: list[tuple[int, float]] = []
        end = 0.0
        for start, length, n_same, frames in stretches:
            self._end(path, n_same, start * scale, timed)
            for index in frames:
                path.append((self._child(path[-1][0] if path else 0, index), start * scale))
            own = path[-1][0] if path else 0
            values[own] = values.get(own, 0) + length * scale
            end = (start + length) * scale
        self._end(path, 0, end, timed)

    def _child(self, node: int, index: int) -> int:
        if not 0 <= index < len(self._frame_ids):
            raise ValueError(f"there is no frame {index}")
        return self._nodes.child(node, self._frame_ids[index])

    def _end(self, path: list[tuple[int, float]], n_kept: int, end_ns: float, timed: bool) -> None:
        if not timed:
            del path[n_kept:]
        while len(path) > n_kept:
            node, start_ns = path.pop()
            begin = _whole(start_ns)
            self._slices.append((begin, max(_whole(end_ns) - begin, 0), node, len(self._tracks) - 1))

    def profile(self, trace: bool) -> Profile:
        """The profile of all parts."""
        tree = self._nodes.tree(self._frame_table())
        meta: dict[str, Any] = {"recorder": self._exporter or "speedscope", "data": "trace" if self._slices else "tree"}
        n_tracks = len(self._tracks)
        numbers = np.arange(1, n_tracks + 1)
        kinds = [TrackKind.HOST_THREAD] * n_tracks
        zeros = np.zeros(n_tracks)
        start_ns, duration_ns, node, track = np.array(self._slices, np.int64).reshape(-1, 4).T
        slices = SliceTable(start_ns, duration_ns, node, track, np.zeros(len(start_ns)))  # type: ignore[arg-type]
        tracks = TrackTable(kinds, zeros, zeros - 1, zeros, numbers, self._tracks)  # type: ignore[arg-type]
        metrics = {name: _metric(name, unit, column, len(tree)) for (name, unit), column in self._values.items()}
        return Profile(meta, tree, metrics, tracks, slices.sorted() if trace else SliceTable.empty())

    def _frame_table(self) -> FrameTable:
        """The frames; what has GPU time of its own in a file of bragg is a kernel."""
        frames = self._frames.table()
        kind = frames.kind.copy()
        for node, time_ns in self._values.get(("gpu_time", "ns"), {}).items():
            if node and time_ns > 0:
                kind[self._nodes.frame[node]] = FrameKind.KERNEL
        return frames.replace(kind=kind)


# Start, length, how many of the outermost frames are those of the stack before, and the frames further in.
_Stretch = tuple[float, float, int, list[int]]


def _metric_of(unit: str) -> tuple[str, str]:
    if unit in _NS_OF_UNIT:
        return "host_time", "ns"
    return _NAMES[_UNITS[unit]], _UNITS[unit]


def _metric(name: str, unit: str, column: Mapping[int, float], n_nodes: int) -> Metric:
    own = np.zeros(n_nodes)
    own[list(column)] = list(column.values())
    whole = np.rint(own)
    is_whole = unit == "ns" or bool((own == whole).all())
    return Metric(name, unit, MetricKind.INCLUSIVE, whole.astype(np.int64) if is_whole else own)


def _sampled(part: Mapping[str, Any]) -> Iterator[_Stretch]:
    """The stack of each sample."""
    samples, weights = _list(part.get("samples"), "samples"), part.get("weights")
    weights = _list(weights, "weights") if weights is not None else [1] * len(samples)
    if len(samples) != len(weights):
        raise ValueError(f"{len(samples)} samples have {len(weights)} weights")
    start = _value(part.get("startValue", 0))
    before: list[int] = []
    for content, weight in zip(samples, weights, strict=True):
        length, stack = _value(weight), [_index(index) for index in _list(content, "stack")]
        n_same = next((row for row, (old, new) in enumerate(zip(before, stack, strict=False)) if old != new), None)
        n_same = min(len(before), len(stack)) if n_same is None else n_same
        yield start, length, n_same, stack[n_same:]
        start, before = start + length, stack


def _evented(part: Mapping[str, Any]) -> Iterator[_Stretch]:
    """The stack between one event and the next."""
    if part.get("type") != "evented":
        raise ValueError(f"a profile is of type {part.get('type')!r}")
    stack: list[int] = []
    n_same = 0
    now = _value(part.get("startValue", 0))
    for event in _list(part.get("events"), "events"):
        event = _object(event, "event")
        at, frame = _value(event.get("at")), _index(event.get("frame"))
        if at < now:
            raise ValueError(f"an event at {at} follows one at {now}")
        if at > now:
            yield now, at - now if stack else 0.0, n_same, stack[n_same:]
            n_same = len(stack)
        now = at
        if event.get("type") == "O":
            stack.append(frame)
        elif stack and stack[-1] == frame:
            stack.pop()
            n_same = min(n_same, len(stack))
        else:
            raise ValueError(f"frame {frame} closes and is not the innermost")
    if stack:
        raise ValueError(f"{len(stack)} frames do not close")


def _object(value: Any, what: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError(f"a {what} is not an object")  # noqa: TRY004
    return value


def _list(value: Any, what: str) -> list[Any]:
    if not isinstance(value, list):
        raise ValueError(f"{what} are not a list")  # noqa: TRY004
    return value


def _index(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise ValueError(f"{value!r} is not a number of a frame")  # noqa: TRY004
    return value


def _value(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < _MAX_NS:
        raise ValueError(f"{value!r} is not a weight or time")
    if not math.isfinite(value):
        raise ValueError(f"{value!r} is not finite")
    return float(value)


def _whole(value_ns: float) -> int:
    if value_ns >= _MAX_NS:
        raise ValueError(f"a time of {value_ns:g} ns is none")
    return round(value_ns)
