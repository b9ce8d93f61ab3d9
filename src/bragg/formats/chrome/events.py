"""The events of a Chrome trace as columns, as they are read."""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np

from bragg.formats.chrome.names import collective_name, frame_of, whole_number
from bragg.formats.encodings.trace_event import arguments_of, time_ns
from bragg.formats.limits import Limits
from bragg.model import FrameKind
from bragg.model.table import Int64Array

_COLUMNS = ("start_ns", "duration_ns", "lane", "what", "correlation", "operator", "bytes")
# Its launches tell correlation ids, and from forward to backward operators nothing is launched.
_FLOWS_OF_PYTORCH = ("ac2g", "fwdbwd")
_CORRELATIONS = ("correlation", "correlation_id")


class ChromeEvents:
    """Slices as columns, and what other events say about them.

    Args:
        limits: Of the file.

    Attributes:
        is_trace: Whether there was any event.
        lanes: Process and thread of each lane, in the order of their first event.
        whats: Category, name and call path or place of each kind of slice.
        frames: Frame kind, name, file and line of each kind of slice.
        names: Of processes, by (process, ""), and of lanes.
        devices: The device that the slices of a lane name.
        flows: Ids of arrows, by lane and start of the slice.
        launches: How often a kind of slice ran in a lane with a configuration: registers, shared bytes, grid, block.
        counters: Time, process, name and value.
        not_read: Events of phases that have no place in a profile, by phase.
    """

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._n_rows = 0
        self._columns = {name: array("q") for name in _COLUMNS}
        # By lane, rows of slices that have begun: a row stands where its slice begins, before those that it encloses.
        self._open: dict[tuple[str, str], list[int]] = {}
        # Arrows from one launch to several streams have ids of their own; the first one is taken for all.
        self._same_flow: dict[int, int] = {}
        self.is_trace = False
        self.lanes: dict[tuple[str, str], int] = {}
        self.whats: dict[tuple[str, str, str | None], int] = {}
        self.frames: list[tuple[FrameKind, str, str, int]] = []
        self.names: dict[tuple[str, str], str] = {}
        self.devices: dict[int, int] = {}
        self.flows: dict[tuple[int, int], int] = {}
        self.launches: Counter[tuple[int, int, tuple[int, ...]]] = Counter()
        self.counters: list[tuple[int, str, str, float]] = []
        self.not_read: Counter[str] = Counter()

    def add(self, event: Any) -> None:
        """Take in an event.

        Raises:
            ValueError: It is none, its times are none, or there are too many.
        """
        self._count_row()
        if not isinstance(event, dict):
            raise ValueError("an event is not an object")  # noqa: TRY004
        phase = event.get("ph")
        if not isinstance(phase, str):
            return
        self.is_trace = True
        place = str(event.get("pid", 0)), str(event.get("tid", 0))
        if phase == "X":
            self._add_slice(event, place, time_ns(event, "ts"), time_ns(event, "dur"))
        elif phase == "M":
            self._add_name(event, place)
        elif phase == "B":
            self._add_slice(event, place, time_ns(event, "ts"), 0)
            self._open.setdefault(place, []).append(len(self._columns["what"]) - 1)
        elif phase == "E":
            self._end_slice(place, time_ns(event, "ts"))
        elif phase in ("s", "f"):
            self._add_flow(event, place)
        elif phase == "C":
            self._add_counter(event, place[0])
        else:
            self.not_read[phase] += 1

    def column(self, name: str) -> Int64Array:
        """Of all slices [n]: `start_ns`, `duration_ns`, `lane`, `what`, `correlation`, `operator` or `bytes`."""
        values = self._columns[name]
        return np.frombuffer(values, np.int64) if values else np.empty(0, np.int64)

    def close(self) -> None:
        """End the slices that have begun and not ended where the trace ends."""
        last_ns = int((self.column("start_ns") + self.column("duration_ns")).max(initial=0))
        for place, rows in self._open.items():
            while rows:
                self._end_slice(place, last_ns)

    def _count_row(self) -> None:
        self._n_rows += 1
        self._limits.check_rows(self._n_rows)

    def _lane(self, place: tuple[str, str]) -> int:
        return self.lanes.setdefault(place, len(self.lanes))

    def _add_slice(self, event: dict[str, Any], place: tuple[str, str], start_ns: int, duration_ns: int) -> None:
        arguments = arguments_of(event)
        lane, what = self._lane(place), self._what(event, arguments)
        correlation = next((whole_number(arguments[name]) for name in _CORRELATIONS if name in arguments), 0)
        operator, size_bytes = whole_number(arguments.get("External id")), whole_number(arguments.get("bytes"))
        values = (start_ns, duration_ns, lane, what, correlation, operator, size_bytes)
        for column, value in zip(self._columns.values(), values, strict=True):
            column.append(value)
        if "device" in arguments:
            self.devices.setdefault(lane, whole_number(arguments["device"], 4096))
        if "grid" in arguments:
            self.launches[what, lane, _launch(arguments)] += 1

    def _end_slice(self, place: tuple[str, str], end_ns: int) -> None:
        if not self._open.get(place):
            self.not_read["E"] += 1
            return
        row = self._open[place].pop()
        self._columns["duration_ns"][row] = max(end_ns - self._columns["start_ns"][row], 0)

    def _what(self, event: dict[str, Any], arguments: Mapping[str, Any]) -> int:
        category, name = str(event.get("cat", "")), collective_name(str(event.get("name", "")), arguments)
        where = arguments.get("call_path")
        if category == "py-spy":
            where = f"{arguments.get('filename')}:{arguments.get('line')}"
        what = self.whats.setdefault((category, name, where if isinstance(where, str) else None), len(self.whats))
        if what == len(self.frames):
            self.frames.append(frame_of(category, name, arguments))
        return what

    def _add_name(self, event: dict[str, Any], place: tuple[str, str]) -> None:
        name = str(arguments_of(event).get("name", ""))
        if event.get("name") == "thread_name":
            self.names[place] = name
        elif event.get("name") == "process_name":
            self.names[place[0], ""] = name

    def _add_flow(self, event: dict[str, Any], place: tuple[str, str]) -> None:
        number = whole_number(event.get("id"))
        if number and event.get("cat") not in _FLOWS_OF_PYTORCH:
            end = self._lane(place), time_ns(event, "ts")
            if end in self.flows:
                self._same_flow[number] = self.flows[end]
            else:
                self.flows[end] = self._same_flow.get(number, number)

    def _add_counter(self, event: dict[str, Any], process: str) -> None:
        for series, value in arguments_of(event).items():
            if isinstance(value, (int, float)) and math.isfinite(value):
                name = str(event.get("name", ""))
                label = name if series == "value" else f"{name} {series}"
                self._count_row()
                self.counters.append((time_ns(event, "ts"), process, label, float(value)))


def _launch(arguments: Mapping[str, Any]) -> tuple[int, ...]:
    """Registers of a thread, shared bytes of a block, three sizes of the grid and three of a block."""
    sizes = [arguments.get(name) for name in ("grid", "block")]
    extents = [number for size in sizes for number in (*(size if isinstance(size, list) else ()), 0, 0, 0)[:3]]
    values = (arguments.get("registers per thread"), arguments.get("shared memory"), *extents)
    return tuple(whole_number(value) for value in values)
