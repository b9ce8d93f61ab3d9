"""Reading Chrome traces: of PyTorch's profiler (Kineto), JAX, py-spy, VizTracer, and bragg's own.

Events are read one after another and kept as columns of 56 bytes, so that a file of gigabytes takes a fraction of its
size. Call paths come from what encloses an event on its thread (`timelines.call_tree`); bragg's own traces tell them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from bragg.formats.chrome.events import ChromeEvents
from bragg.formats.chrome.names import device_lane, frame_of
from bragg.formats.encodings.json_stream import read_list
from bragg.formats.files import open_content
from bragg.formats.format import damaged, unknown_format
from bragg.formats.limits import Limits
from bragg.formats.timelines.call_tree import Frames, Nodes, call_tree
from bragg.formats.timelines.metrics import durations_of_slices, gpu_facts, metrics_of_slices, moved_bytes
from bragg.model import CounterTable, FrameKind, KernelTable, Profile, SliceTable, TrackKind, TrackTable
from bragg.model.facts import Facts
from bragg.model.table import Int32Array, Int64Array

_GPU_KINDS = (FrameKind.KERNEL, FrameKind.MEMORY)
_MAX_INT32 = (1 << 31) - 1
_MAX_NS = 1 << 61
# bragg writes slices that overlap on a track into further lanes.
_OVERFLOW = re.compile(r" \(\d+\)$")
_PROCESS = re.compile(r"process (\d{1,9})")
# Names of a GPU's facts in PyTorch's traces and in `meta["devices"]`.
_DEVICE_FACTS = {"name": "name", "numSms": "num_sms", "totalGlobalMem": "memory_bytes"}
_SEPARATOR = " > "


def is_chrome_trace(start: bytes) -> bool:
    """Whether a file may be a Chrome trace: an object with `traceEvents`, or a list of events."""
    start = start.lstrip()
    if start.startswith(b"{"):
        return any(key in start for key in (b'"traceEvents"', b'"displayTimeUnit"', b'"schemaVersion"'))
    return start.startswith(b"[") and b'"ph"' in start and b'"frame"' not in start


def read(path: Path, *, trace: bool = True) -> Profile:
    """Read a Chrome trace, compressed with gzip or not.

    Raises:
        BadFile: The file is damaged, too large, or JSON of another kind.
    """
    try:
        with open_content(path) as file:
            events = ChromeEvents(Limits.of(path))
            header = read_list(file, "traceEvents", events.add)
        if not events.is_trace:
            raise unknown_format(path)
        events.close()
        profile = _Assembly(events, header).profile(trace)
        profile.check()
    except ValueError as error:
        raise damaged(path, error, "Write or copy the trace again") from error
    return profile


class _Assembly:
    """The tables of a profile from the events of a trace."""

    def __init__(self, events: ChromeEvents, header: Mapping[str, Any]) -> None:
        self._events = events
        self._header = header
        self._frames = Frames()
        self._tracks: dict[tuple[int, int, int, int, str], int] = {}
        self._places = list(events.lanes)
        # The call path of each kind of slice, where bragg wrote it; py-spy tells a place there.
        self._paths = [None if category == "py-spy" else path for category, _, path in events.whats]
        base_ns = header.get("baseTimeNanoseconds")
        self._base_ns = base_ns if isinstance(base_ns, int) and 0 <= base_ns < _MAX_NS else 0
        self._frame_and_track: dict[tuple[int, int], tuple[int, int]] = {}

    def profile(self, trace: bool) -> Profile:
        """The profile of all events."""
        events = self._events
        what, lane = events.column("what"), events.column("lane")
        frame, track = self._frames_and_tracks(what, lane)
        start_ns = events.column("start_ns") + self._base_ns
        rows = SliceTable(start_ns, events.column("duration_ns"), frame, track, self._correlation(lane))
        counters = self._counters()
        tracks, nodes = self._track_table(), Nodes()
        placed = self._placed(nodes, what, frame)
        tree, node = call_tree(self._frames, nodes, tracks, rows, placed, events.column("operator"))
        slices = rows.replace(node=node).sorted()
        return Profile(
            {**self._meta(), **gpu_facts(tracks, slices)},
            tree,
            {**metrics_of_slices(tree, tracks, slices), **moved_bytes(len(tree), node, events.column("bytes"))},
            tracks,
            slices if trace else SliceTable.empty(),
            counters,
            self._kernels(),
            durations_of_slices(tree, tracks, slices),
        )

    def _frames_and_tracks(self, what: Int64Array, lane: Int64Array) -> tuple[Int32Array, Int32Array]:
        """The frame and the track of each slice."""
        n_lanes = max(len(self._events.lanes), 1)
        pairs, place = np.unique(what * n_lanes + lane, return_inverse=True)
        found = [self._frame_and_track_of(*divmod(pair, n_lanes)) for pair in pairs.tolist()]
        columns = np.array(found, np.int32).reshape(-1, 2)[place.reshape(-1)].T
        return columns[0], columns[1]

    def _frame_and_track_of(self, what: int, lane: int) -> tuple[int, int]:
        events = self._events
        place = self._places[lane]
        process = events.names.get((place[0], ""), "")
        device, shows_work = device_lane(process, events.names.get(place, ""))
        kind, name, file, line = events.frames[what]
        if shows_work and kind not in _GPU_KINDS and kind is not FrameKind.MARKER:
            kind = FrameKind.MEMORY if name.lower().startswith(("memcpy", "memset")) else FrameKind.KERNEL
        elif device >= 0 and not shows_work and kind not in _GPU_KINDS:
            kind = FrameKind.MARKER
        track_kind = TrackKind.RANGES if kind is FrameKind.MARKER else TrackKind.HOST_THREAD
        if kind in _GPU_KINDS:
            track_kind, device = TrackKind.GPU_STREAM, max(events.devices.get(lane, device), 0)
        on_device = device if track_kind is TrackKind.GPU_STREAM else -1
        found = self._frames.id(kind, name, file, line, on_device), self._track(track_kind, place, on_device)
        self._frame_and_track[what, lane] = found
        return found

    def _track(self, kind: TrackKind, place: tuple[str, str], device: int) -> int:
        process_name = self._events.names.get((place[0], ""), "")
        process = _PROCESS.match(process_name)
        stream = _number(place[1])
        key = kind, _number(process[1] if process else place[0]) & _MAX_INT32, device, stream, self._lane_name(place)
        return self._tracks.setdefault(key, len(self._tracks))

    def _lane_name(self, place: tuple[str, str]) -> str:
        name = self._events.names.get(place, "")
        if _PROCESS.match(self._events.names.get((place[0], ""), "")):
            name = _OVERFLOW.sub("", name)
        return name if name or place[1].isdecimal() else place[1]

    def _track_table(self) -> TrackTable:
        kind, process, device, stream, name = zip(*self._tracks, strict=True) if self._tracks else ((),) * 5
        return TrackTable(kind, process, device, np.zeros(len(kind)), stream, name)  # type: ignore[arg-type]

    def _correlation(self, lane: Int64Array) -> Int64Array:
        """The ids that launches share with what they caused, else those of arrows between slices."""
        events = self._events
        correlation = events.column("correlation")
        if correlation.any() or not events.flows:
            return correlation
        places = zip(lane.tolist(), events.column("start_ns").tolist(), strict=True)
        return np.array([events.flows.get(place, 0) for place in places], np.int64)

    def _placed(self, nodes: Nodes, what: Int64Array, frame: Int32Array) -> Int32Array:
        """The nodes of slices that tell their call path; -1 for the others."""
        frame_of_label = {
            frame[1]: frame
            for (category, *_), frame in zip(self._events.whats, self._events.frames, strict=True)
            if category
        }
        node_of_path: dict[str, int] = {"": 0}
        for path in filter(None, self._paths):
            node_of_path[path] = self._node_of(nodes, path, frame_of_label)
        above = np.array([-1 if path is None else node_of_path[path] for path in self._paths], np.int32)[what]
        placed = np.full(len(what), -1, np.int32)
        known = np.flatnonzero(above >= 0)
        placed[known] = nodes.children(above[known], frame[known])
        return placed

    def _node_of(self, nodes: Nodes, path: str, frame_of_label: Mapping[str, tuple[FrameKind, str, str, int]]) -> int:
        node = 0
        for label in path.split(_SEPARATOR):
            kind, name, file, line = frame_of_label.get(label) or frame_of("python", label, {})
            if kind is FrameKind.PYTHON and not file:
                kind = FrameKind.SCOPE
            node = nodes.child(node, self._frames.id(kind, name, file, line))
        return node

    def _counters(self) -> CounterTable:
        rows = [
            (time_ns + self._base_ns, self._counter_track(process, name), value)
            for time_ns, process, name, value in self._events.counters
        ]
        time_ns, track, value = zip(*rows, strict=True) if rows else ((), (), ())
        return CounterTable(time_ns, track, value)  # type: ignore[arg-type]

    def _counter_track(self, process: str, name: str) -> int:
        key = TrackKind.COUNTER, _number(process) & _MAX_INT32, -1, 0, name
        return self._tracks.setdefault(key, len(self._tracks))

    def _kernels(self) -> KernelTable:
        rows = [
            (self._frame_and_track[what, lane][0], registers, 0, shared, 0, *extents, 0, 0, 0, count)
            for (what, lane, (registers, shared, *extents)), count in self._events.launches.items()
        ]
        return KernelTable(*np.array(rows, np.int64).reshape(-1, len(KernelTable.columns())).T)

    def _meta(self) -> dict[str, Any]:
        other = self._header.get("otherData")
        if isinstance(other, dict) and any(path is not None for path in self._paths):
            return dict(other)
        meta: dict[str, Any] = {"recorder": self._recorder(), "data": "trace", "devices": self._devices()}
        meta |= self._place()
        left_out = {phase: count for phase, count in self._events.not_read.items() if count}
        return {**meta, **({"events_left_out": left_out} if left_out else {})}

    def _place(self) -> dict[str, Any]:
        """The rank in a distributed job, as PyTorch's profiler writes it."""
        told = Facts(self._header.get("distributedInfo"))
        rank, ranks, host = told.integer("rank"), told.integer("world_size"), self._header.get("host_name")
        if rank is None or rank < 0:
            return {}
        return {"rank": rank, "ranks": ranks, **({"host": host} if isinstance(host, str) else {})}

    def _recorder(self) -> str:
        if "schemaVersion" in self._header or "deviceProperties" in self._header:
            return "torch.profiler"
        if "viztracer_metadata" in self._header:
            return "VizTracer"
        if any(name.startswith(("/host:", "/device:")) for name in self._events.names.values()):
            return "jax.profiler"
        return "py-spy" if any(category == "py-spy" for category, *_ in self._events.whats) else "Chrome trace"

    def _devices(self) -> list[dict[str, Any]]:
        devices = self._header.get("deviceProperties")
        return [
            {
                **{ours: device[theirs] for theirs, ours in _DEVICE_FACTS.items() if theirs in device},
                "arch": f"{device.get('computeMajor')}{device.get('computeMinor')}",
            }
            for device in (devices if isinstance(devices, list) else [])
            if isinstance(device, dict)
        ]


def _number(text: str) -> int:
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 19 else 0
