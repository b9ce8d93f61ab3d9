"""Timelines that Proton wrote, `chrome_trace`.

Up to release 3.6 a file has one JSON document a line, each with the kernels of one stream; later ones are one document
with scopes, kernels and arrows between them. Events tell their call path, and no device. A trace of an instrumented
kernel counts cycles, shown as if one took a nanosecond.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from bragg.formats.encodings.deep_json import memory_bytes
from bragg.formats.encodings.trace_event import arguments_of, time_ns
from bragg.formats.files import read_content
from bragg.formats.format import Format, unknown_format
from bragg.formats.limits import Limits
from bragg.formats.proton.names import MetricColumns, TreeBuilder, frame_kind
from bragg.formats.proton.trees import damaged
from bragg.formats.timelines.metrics import durations_of_slices, metrics_of_slices
from bragg.model import FrameKind, Profile, SliceTable, TrackKind, TrackTable

_NO_EVENTS = re.compile(rb'"traceEvents": *\[\s*\]')
# Thread ids of streams, and of ranges of graphs, begin here.
_STREAM_LANES = 200_000
_GRAPH_LANES = 100_000
_MAX_NS = 1 << 62
_KINDS = {"kernel": TrackKind.GPU_STREAM, "scope": TrackKind.HOST_THREAD, "metric": TrackKind.HOST_THREAD}


def is_trace(start: bytes) -> bool:
    """Whether a file may be a timeline of Proton: its events have call paths, or it is empty."""
    return start.lstrip().startswith(b"{") and (b'"call_stack"' in start or _NO_EVENTS.search(start) is not None)


def read(path: Path, *, trace: bool = True) -> Profile:
    """Read a timeline.

    Raises:
        BadFile: The file is damaged, or JSON of another kind.
    """
    content, limits = read_content(path), Limits.of(path)
    try:
        limits.check_memory(memory_bytes(content))
        documents = list(_documents(content))
    except (ValueError, RecursionError) as error:
        raise damaged(path, error) from error
    if not all(isinstance(document, dict) and isinstance(document.get("traceEvents"), list) for document in documents):
        raise unknown_format(path)
    try:
        timeline = _Timeline()
        for document in documents:
            timeline.add(document)
        if not timeline.is_of_proton:
            raise unknown_format(path)
        return timeline.profile(trace, limits)
    except ValueError as error:
        raise damaged(path, error) from error


def _documents(content: bytes) -> Iterator[Any]:
    try:
        yield json.loads(content)
    except json.JSONDecodeError as error:
        if not error.msg.startswith("Extra data"):
            raise
        yield from map(json.loads, filter(None, content.splitlines()))


class _Timeline:
    """Events as rows of a profile."""

    def __init__(self) -> None:
        self._nodes = TreeBuilder()
        self._columns = MetricColumns()
        self._tracks: dict[tuple[TrackKind, str, str], int] = {}
        self._lane_names: dict[tuple[str, str], str] = {}
        # Rows of slices: start, duration, node, track; and what flows begin or end with them.
        self._slices: list[tuple[int, int, int, int]] = []
        self._places: list[tuple[str, str, int]] = []
        self._flows: dict[tuple[str, str, int], int] = {}
        self.is_of_proton = False

    def add(self, document: dict[str, Any]) -> None:
        """Take in the events of a document."""
        base_ns = document.get("baseTimeNanoseconds", 0)
        base_ns = base_ns if isinstance(base_ns, int) and 0 <= base_ns < _MAX_NS else 0
        for event in document["traceEvents"]:
            if not isinstance(event, dict):
                raise ValueError("an event is not an object")  # noqa: TRY004
            phase, lane = event.get("ph"), (str(event.get("pid", 0)), str(event.get("tid", 0)))
            if phase == "X":
                self._add_slice(event, lane, base_ns)
            elif phase == "M" and event.get("name") == "thread_name":
                self._lane_names[lane] = str(arguments_of(event).get("name", ""))
            elif phase in ("s", "f") and isinstance(event.get("id"), int):
                place = (*lane, base_ns + time_ns(event, "ts"))
                self._flows[place] = event["id"] % _MAX_NS + 1
        if not document["traceEvents"]:
            self.is_of_proton = True

    def _add_slice(self, event: dict[str, Any], lane: tuple[str, str], base_ns: int) -> None:
        found = _place_in_tree(event, lane)
        if found is None:
            return
        self.is_of_proton = True
        track_kind, frames = found
        node = 0
        for name, kind in frames:
            node = self._nodes.child(node, name, kind)
        start_ns, duration_ns = base_ns + time_ns(event, "ts"), time_ns(event, "dur")
        track = self._tracks.setdefault((track_kind, *lane), len(self._tracks))
        self._slices.append((start_ns, duration_ns, node, track))
        self._places.append((*lane, start_ns))
        if str(event.get("cat")) not in _KINDS:
            self._columns.add(node, "cycles (exc)", duration_ns)
        metrics = arguments_of(event).get("metrics")
        if isinstance(metrics, dict) and track_kind is not TrackKind.RANGES:
            for name, value in metrics.items():
                self._columns.add(node, name, _number(value))

    def profile(self, trace: bool, limits: Limits) -> Profile:
        """The profile of all events."""
        tree = self._nodes.tree()
        tracks = self._track_table()
        slices = self._slice_table()
        metrics = metrics_of_slices(tree, tracks, slices.take(tracks.kind[slices.track] != TrackKind.RANGES))
        own = self._columns.metrics(len(tree), {}, limits)
        meta: dict[str, Any] = {"recorder": "proton", "data": "trace"}
        if self._columns.texts:
            meta["text_metrics"] = sorted(self._columns.texts)
        return Profile(
            meta,
            tree,
            {**own, **metrics},
            tracks,
            slices.sorted() if trace else SliceTable.empty(),
            durations=durations_of_slices(tree, tracks, slices),
        )

    def _slice_table(self) -> SliceTable:
        columns = np.array(self._slices, np.int64).reshape(-1, 4).T
        correlation = np.array([self._flows.get(place, 0) for place in self._places], np.int64)
        start_ns, duration_ns, node, track = columns
        return SliceTable(start_ns, duration_ns, node.astype(np.int32), track.astype(np.int32), correlation)

    def _track_table(self) -> TrackTable:
        kinds, processes, lanes = zip(*self._tracks, strict=True) if self._tracks else ((), (), ())
        streams = [int(lane) if lane.isdecimal() and len(lane) < 18 else 0 for lane in lanes]
        return TrackTable(
            kind=np.array(kinds, np.uint8),
            process=np.array([int(pid) if pid.isdecimal() and len(pid) < 10 else 0 for pid in processes], np.int32),
            device=np.full(len(kinds), -1, np.int32),
            context=np.zeros(len(kinds), np.int64),
            stream=np.array([stream % _STREAM_LANES for stream in streams], np.int64),
            name=[self._lane_name(*key) for key in self._tracks],
        )

    def _lane_name(self, kind: TrackKind, process: str, lane: str) -> str:
        usual = {TrackKind.GPU_STREAM: f"GPU stream {lane}", TrackKind.HOST_THREAD: f"CPU thread {lane}"}
        return self._lane_names.get((process, lane)) or usual.get(kind, f"{process} {lane}")


def _place_in_tree(
    event: dict[str, Any], lane: tuple[str, str]
) -> tuple[TrackKind, list[tuple[str, FrameKind]]] | None:
    """The kind of track of a slice, and names and kinds of its call path; None when it has none."""
    stack, name = arguments_of(event).get("call_stack"), str(event.get("name"))
    if stack is None and str(event.get("cat")) in _KINDS and _is_graph_lane(lane[1]):
        return TrackKind.RANGES, [(name.partition(": <")[0], FrameKind.MARKER)]
    if not isinstance(stack, list) or not all(isinstance(caller, str) for caller in stack):
        return None
    frames = [(caller, frame_kind(caller)) for caller in (stack[1:] if stack[:1] == ["ROOT"] else stack)]
    track_kind = _KINDS.get(str(event.get("cat")), TrackKind.RANGES)
    if track_kind is TrackKind.GPU_STREAM:
        # The helper kernels of metrics are called otherwise than the kernel whose path they have.
        frames = [*(frames[:-1] if frames and frames[-1][0] == name else frames), (name, FrameKind.KERNEL)]
    return track_kind, frames


def _is_graph_lane(lane: str) -> bool:
    return lane.isdecimal() and _GRAPH_LANES <= int(lane) < _STREAM_LANES


def _number(value: Any) -> Any:
    """Values of metrics are written as text."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value


FORMAT = Format(".chrome_trace", "timeline as Proton writes it", sniff=is_trace, read=read)
