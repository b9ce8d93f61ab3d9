"""Blocks and warps of launches with clocks as tracks of the timeline, from what the recorder tells at its end."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bragg.formats.captured.chunks import ChunkType
from bragg.formats.captured.tables import NO_REFERENCE, CaptureTables, rows_of
from bragg.model import FrameKind, TrackKind
from bragg.model.facts import Facts
from bragg.model.kernels.inside import WITH_CLOCKS

_MAX_NS = 10**12
# Each is a node of the tree: of larger grids, neighbours share one.
_MAX_BLOCK_NODES = 1024


def add_clock_slices(tables: CaptureTables) -> None:
    """Add a track for each place of a multiprocessor with the blocks of each kernel, and one for each warp that told.

    Times of the GPU's global timer begin with the launch that they are of: the last one with clocks. `timeline` of
    each kernel goes from the meta.
    """
    rows = tables.meta.get("inside_kernels")
    for row in rows if isinstance(rows, list) else ():
        told = Facts(row.pop("timeline", None) if isinstance(row, dict) else None)
        launch = _last_launch(tables, Facts(row).text("kernel") + WITH_CLOCKS) if len(told) else None
        if launch is None:
            continue
        node, device, start_ns, duration_ns = launch
        # The launch's record goes from before the first block to after the last one's end.
        first_ns = start_ns + max(duration_ns - told.count("span_ns"), 0) // 2
        timeline = _Timeline(tables, node, device, first_ns)
        _add_blocks(timeline, told)
        _add_passages(timeline, told)
        _add_events(timeline, told)


class _Timeline:
    """Tracks and nodes that are being added below a launch.

    Args:
        tables: They are added to.
        node: Of the kernel.
        device: Its GPU.
        first_ns: When its first block began.
    """

    def __init__(self, tables: CaptureTables, node: int, device: int, first_ns: int) -> None:
        self._tables = tables
        self._node = node
        self._device = device
        self._first_ns = first_ns

    def nodes(self, names: Sequence[tuple[str, str, int]]) -> int:
        """Add a node for each name, with its file and line; returns the first."""
        tables, n, own = self._tables, len(names), np.arange(len(names))
        first_string = max(tables.strings, default=-1) + 1
        tables.strings.update(enumerate([name for name, _, _ in names], first_string))
        first_file = first_string + n
        tables.strings.update(enumerate([file for _, file, _ in names], first_file))
        first_frame, first_node = tables.frames.end, tables.nodes.end
        has_file = np.array([bool(file) for _, file, _ in names], np.bool_)
        frames = rows_of(
            ChunkType.FRAMES,
            n,
            kind=FrameKind.MARKER,
            name=first_string + own,
            file=np.where(has_file, first_file + own, NO_REFERENCE),
            line=[line for _, _, line in names],
        )
        tables.frames.add(first_frame, n, frames)
        tables.nodes.add(first_node, n, rows_of(ChunkType.NODES, n, parent=self._node, frame=first_frame + own))
        return first_node

    def tracks(self, names: Sequence[str], numbers: Sequence[int]) -> int:
        """Add a track for each name; returns the first."""
        tables, n, own = self._tables, len(names), np.arange(len(names))
        first_string, first = max(tables.strings, default=-1) + 1, tables.tracks.end
        tables.strings.update(enumerate(names, first_string))
        kind, device = TrackKind.DEVICE_UNIT, self._device
        columns = rows_of(
            ChunkType.TRACKS, n, kind=kind, device=device, context=0, stream=numbers, name=first_string + own
        )
        tables.tracks.add(first, n, columns)
        return first

    def slices(
        self,
        start_ns: NDArray[np.int64],
        duration_ns: NDArray[np.int64],
        node: NDArray[np.int64],
        track: NDArray[np.int64],
    ) -> None:
        """Add slices; times count from the first block's start."""
        columns = {"start_ns": self._first_ns + start_ns, "duration_ns": duration_ns, "node": node, "track": track}
        self._tables.slices.append(rows_of(ChunkType.SLICES, len(node), correlation=0, **columns))


def _add_blocks(timeline: _Timeline, told: Facts) -> None:
    columns = _columns(told, "block", "multiprocessor", "start_ns", "duration_ns")
    if columns is None:
        return
    block, multiprocessor, start_ns, duration_ns = columns
    place = _places(multiprocessor, start_ns, start_ns + duration_ns)
    units, of = np.unique(np.stack([multiprocessor, place], axis=1), axis=0, return_inverse=True)
    labels = [f"SM {unit}" + (f" ({beside + 1})" if beside else "") for unit, beside in units.tolist()]
    first_track = timeline.tracks(labels, units[:, 0].tolist())
    each = int(block.max()) // _MAX_BLOCK_NODES + 1
    firsts, node = np.unique(block // each * each, return_inverse=True)
    names = [f"block {first}" if each == 1 else f"blocks {first} to {first + each - 1}" for first in firsts.tolist()]
    first_node = timeline.nodes([(name, "", 0) for name in names])
    timeline.slices(start_ns, duration_ns, first_node + node, first_track + of.reshape(-1))


def _places(where: NDArray[np.int64], start_ns: NDArray[np.int64], end_ns: NDArray[np.int64]) -> NDArray[np.int64]:
    """A number for each row that differs from those of the rows that are at the same place at the same time."""
    busy_until: dict[int, list[int]] = {}
    place = np.zeros(len(start_ns), np.int64)
    for row in np.argsort(start_ns, kind="stable").tolist():
        ends = busy_until.setdefault(int(where[row]), [])
        free = next((number for number, end in enumerate(ends) if end <= start_ns[row]), len(ends))
        ends[free : free + 1] = [int(end_ns[row])]
        place[row] = free
    return place


def _add_passages(timeline: _Timeline, told: Facts) -> None:
    columns = _columns(told, "warp", "segment", "passage_start_ns", "passage_ns")
    warps = [tuple(each) for each in _lists(told, "warps", int, int, int)]
    names = [(str(does), str(file), int(line)) for does, file, line in _lists(told, "names", str, str, int)]
    if columns is None or not warps or not names:
        return
    warp, segment, start_ns, duration_ns = columns
    if warp.max() >= len(warps) or segment.max() >= len(names) or min(line for _, _, line in names) < 0:
        return
    labels = [f"SM {unit}, block {block}, warp {number}" for block, number, unit in warps]
    first_track = timeline.tracks(labels, [max(unit, 0) for _, _, unit in warps])
    first_node = timeline.nodes([(_with_line(*name), *name[1:]) for name in names])
    timeline.slices(start_ns, duration_ns, first_node + segment, first_track + warp)


def _add_events(timeline: _Timeline, told: Facts) -> None:
    """A track for events of a block that do not overlap."""
    columns = _columns(told, "event", "event_block", "event_multiprocessor", "event_start_ns", "event_ns")
    names = [(str(name), str(file), int(line)) for name, file, line in _lists(told, "event_names", str, str, int)]
    if columns is None or not names or columns[0].max() >= len(names) or min(line for _, _, line in names) < 0:
        return
    event, block, multiprocessor, start_ns, duration_ns = columns
    lane = _places(block, start_ns, start_ns + duration_ns)
    units, of = np.unique(np.stack([multiprocessor, block, lane], axis=1), axis=0, return_inverse=True)
    labels = [
        f"SM {unit}, block {number}, events" + (f" ({beside + 1})" if beside else "")
        for unit, number, beside in units.tolist()
    ]
    first_track = timeline.tracks(labels, units[:, 0].tolist())
    first_node = timeline.nodes([(_with_line(*name), *name[1:]) for name in names])
    timeline.slices(start_ns, duration_ns, first_node + event, first_track + of.reshape(-1))


def _with_line(does: str, file: str, line: int) -> str:
    return f"{does} ({PurePosixPath(file).name}:{line})" if file else does


def _last_launch(tables: CaptureTables, name: str) -> tuple[int, int, int, int] | None:
    """Node, device, start and duration of a kernel's last slice on a GPU; None: there is none."""
    named = [string for string, text in tables.strings.items() if text == name]
    frames = np.flatnonzero(np.isin(tables.frames.column("name"), named))
    nodes = np.flatnonzero(np.isin(tables.nodes.column("frame"), frames))
    found = [
        (int(part["start_ns"][row]), int(part["duration_ns"][row]), int(part["node"][row]), int(part["track"][row]))
        for part in tables.slices
        for row in np.flatnonzero(np.isin(part["node"], nodes)).tolist()
    ]
    if not found:
        return None
    start_ns, duration_ns, node, track = max(found)
    devices = tables.tracks.column("device")
    return node, int(devices[track]) if track < len(devices) else -1, start_ns, duration_ns


def _columns(told: Facts, *names: str) -> list[NDArray[np.int64]] | None:
    """Columns of equal length, whose numbers are neither negative nor too large; None: they are none."""
    found = [told.values().get(name) for name in names]
    if not all(isinstance(column, list) and set(map(type, column)) == {int} for column in found):
        return None
    try:
        columns = [np.array(column, np.int64) for column in found]
    except OverflowError:
        return None
    is_fine = len(set(map(len, columns))) == 1 and all(each.min() >= 0 and each.max() <= _MAX_NS for each in columns)
    return columns if is_fine else None


def _lists(told: Facts, name: str, *types: type) -> list[list[Any]]:
    """Lists of values of these types; empty: one of them is another thing."""
    value = told.values().get(name)
    found = value if isinstance(value, list) else []
    return found if all(isinstance(each, list) and [*map(type, each)] == [*types] for each in found) else []
