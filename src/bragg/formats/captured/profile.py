"""The tables of a profile from those of a capture.

Where chunks were lost, references lead nowhere. Each table has a row `<lost>` at its end that such references lead to,
so that totals stay right and the gap is seen; rows that stay unused are removed with the other nodes without data.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bragg.formats.captured.chunks import ChunkType
from bragg.formats.captured.tables import CaptureTables, Columns, MetricGroup, last_rows
from bragg.model import (
    CallTree,
    Combine,
    DurationTable,
    FrameKind,
    FrameTable,
    IdleTable,
    InputTable,
    KernelTable,
    Metric,
    MetricKind,
    TrackKind,
    TrackTable,
)
from bragg.model.host_time import THREAD_TIME, WAIT_TIME, own_host_time, waiting_nodes
from bragg.model.meta.run import Run
from bragg.model.table import Int32Array, Int64Array

LOST = "<lost>"


def resolve(ids: NDArray[Any], n_rows: int) -> Int32Array:
    """Rows of a table, the last one for ids that it does not have: int32 [n_ids]."""
    return np.where((ids >= 0) & (ids < n_rows), ids, n_rows - 1).astype(np.int32)


def tree_of(tables: CaptureTables) -> CallTree:
    """The call tree, and one more node under the root for lost nodes."""
    frames = _frames(tables)
    parent, frame = tables.nodes.column("parent"), tables.nodes.column("frame")
    if not len(parent):
        parent, frame = np.array([-1]), np.array([-1])
    parent[0] = -1
    parent[1:] = np.maximum(parent[1:], 0)
    return CallTree(np.append(parent, 0).astype(np.int32), resolve(np.append(frame, -1), len(frames)), frames)


def _frames(tables: CaptureTables) -> FrameTable:
    kind, name, file, line, device = (
        tables.frames.column(column) for column in ("kind", "name", "file", "line", "device")
    )
    return FrameTable(
        kind=np.append(np.where(kind < 0, FrameKind.MARKER, kind), FrameKind.MARKER),
        name=[*(tables.strings.get(text, LOST) for text in name.tolist()), LOST],
        file=[*("" if text < 0 else tables.strings.get(text, LOST) for text in file.tolist()), ""],
        line=np.append(np.maximum(line, 0), 0),
        device=np.append(device, -1),
    )


def tracks_of(tables: CaptureTables) -> TrackTable:
    """The tracks, and one more for lost tracks if a slice needs it."""
    kind, device, context, stream, name = (
        tables.tracks.column(column) for column in ("kind", "device", "context", "stream", "name")
    )
    highest = max((int(part["track"].max(initial=0)) for part in [*tables.slices, *tables.counters]), default=-1)
    if highest >= len(kind):
        kind, device, context, stream, name = (
            np.append(column, -1) for column in (kind, device, context, stream, name)
        )
    run = Run(tables.meta)
    process, rank = run.pid, -1 if run.rank is None else run.rank
    has_process = process is not None and 0 < process < 2**31
    return TrackTable(
        kind=np.where(kind < 0, TrackKind.HOST_THREAD, kind),
        process=np.full(len(kind), process if has_process else 1, np.int32),
        device=device.astype(np.int32),
        context=np.where(kind == TrackKind.COUNTER, 0, np.maximum(context, 0)),
        stream=np.maximum(stream, 0),
        name=[_track_name(tables, *row) for row in zip(kind.tolist(), context.tolist(), name.tolist(), strict=True)],
        rank=np.full(len(kind), rank if -1 <= rank < 2**31 else -1, np.int32),
        host=[run.host] * len(kind),
    )


def _track_name(tables: CaptureTables, kind: int, context: int, name: int) -> str:
    """A counter's name has its unit, which stands in place of a context."""
    text = tables.strings.get(name, LOST)
    unit = tables.strings.get(context, "") if kind == TrackKind.COUNTER else ""
    return f"{text} ({unit})" if unit else text


def kernels_of(tables: CaptureTables, tree: CallTree) -> KernelTable:
    """The launch configurations."""
    columns = [name for name in KernelTable.columns() if name != "count"]
    rows = last_rows(tables.kernels, ChunkType.KERNELS, tuple(columns))
    return KernelTable(**{**rows, "frame": resolve(rows["frame"], len(tree.frames))})


def durations_of(tables: CaptureTables, tree: CallTree) -> DurationTable:
    """The histograms of kernel durations."""
    rows = last_rows(tables.durations, ChunkType.DURATIONS, ("frame", "bucket"))
    return DurationTable(**{**rows, "frame": resolve(rows["frame"], len(tree.frames))})


def inputs_of(tables: CaptureTables, tree: CallTree) -> InputTable:
    """Which operators made the inputs of operators, where both are known."""
    rows = last_rows(tables.inputs, ChunkType.INPUTS, ("node", "input", "producer", "output"))
    known = (rows["node"] < len(tree)) & (rows["producer"] < len(tree))
    return InputTable(**{name: values[known] for name, values in rows.items()})


def idle_of(tables: CaptureTables, tree: CallTree) -> IdleTable:
    """What GPUs waited for. Bins become wider as the run continues; the widest hold everything."""
    widest = max((int(part["bin_ns"].max(initial=0)) for part in tables.idle), default=0)
    parts = [part for part in tables.idle if (part["bin_ns"] == widest).all()]
    rows = last_rows(parts, ChunkType.IDLE, ("device", "kind", "node", "start_ns"))
    known = (rows["node"] < len(tree)) & (rows["kind"] < 1 << 31) & (rows["device"] < 1 << 31)
    columns = {name: values[known] for name, values in rows.items()}
    return IdleTable(process=np.zeros(int(known.sum()), np.int32), **columns).of_known_kinds()


def attributes_of(tables: CaptureTables, frames: FrameTable) -> dict[str, dict[str, str]]:
    """Attributes of frames: label -> key -> value. Of several values the first one stays."""
    found: dict[str, dict[str, str]] = {}
    for part in tables.attributes:
        rows = zip(
            resolve(part["frame"], len(frames)).tolist(), part["key"].tolist(), part["value"].tolist(), strict=True
        )
        for frame, key, value in rows:
            if key in tables.strings and value in tables.strings:
                found.setdefault(frames.label(frame), {}).setdefault(tables.strings[key], tables.strings[value])
    return found


def metrics_of(tables: CaptureTables, tree: CallTree) -> dict[str, Metric]:
    """The metrics of the groups that have rows; README.md beside this file has the table of them."""
    rows = last_rows(tables.metrics, ChunkType.METRICS, ("node", "group"))
    rows["node"] = resolve(rows["node"], len(tree))
    groups = {
        group: {name: values[rows["group"] == group].astype(np.int64) for name, values in rows.items()}
        for group in MetricGroup
    }
    found = _device_metrics(groups[MetricGroup.DEVICE], len(tree))
    found += _host_metrics(groups, tree)
    found += _marker_metrics(groups[MetricGroup.MARKER], len(tree))
    found += _wait_metrics(groups[MetricGroup.WAIT], len(tree))
    return {metric.name: metric for metric in found}


def _device_metrics(rows: Columns, n_nodes: int) -> list[Metric]:
    if not len(rows["node"]):
        return []
    extremes = [
        Metric(name, "ns", MetricKind.PROPERTY, np.full(n_nodes, np.nan), combine)
        for name, combine in (("gpu_time_min", Combine.MIN), ("gpu_time_max", Combine.MAX))
    ]
    for metric, column in zip(extremes, ("min_ns", "max_ns"), strict=True):
        metric.combine.ufunc.at(metric.own, rows["node"], rows[column])
    return [
        Metric("gpu_time", "ns", MetricKind.INCLUSIVE, _sum(rows, "total_ns", n_nodes)),
        Metric("gpu_count", "1", MetricKind.INCLUSIVE, _sum(rows, "count", n_nodes)),
        Metric("gpu_bytes", "B", MetricKind.INCLUSIVE, _sum(rows, "bytes", n_nodes)),
        *extremes,
    ]


def _host_metrics(groups: Mapping[MetricGroup, Columns], tree: CallTree) -> list[Metric]:
    found, measured = [], groups[MetricGroup.HOST]
    sampled, of_threads = groups[MetricGroup.SAMPLE], groups[MetricGroup.THREAD]
    if any(len(rows["node"]) for rows in (measured, sampled, of_threads)):
        entered = _sum(measured, "count", len(tree))
        threads_ns = _sum(of_threads, "total_ns", len(tree))
        sampled_ns = _sum(sampled, "total_ns", len(tree)) + threads_ns
        own = own_host_time(tree, _sum(measured, "total_ns", len(tree)), entered > 0, sampled_ns)
        found.append(Metric("host_time", "ns", MetricKind.INCLUSIVE, own))
        found.append(Metric("host_count", "1", MetricKind.EXCLUSIVE, entered))
        waited = np.where(waiting_nodes(tree), own, 0)
        if waited.any():
            found.append(Metric(WAIT_TIME, "ns", MetricKind.INCLUSIVE, waited))
        if len(of_threads["node"]):
            of_functions = np.where(entered > 0, 0, np.minimum(own, threads_ns))
            found.append(Metric(THREAD_TIME, "ns", MetricKind.INCLUSIVE, of_functions))
    if len(sampled["node"]) or len(of_threads["node"]):
        samples = _sum(sampled, "count", len(tree)) + _sum(of_threads, "count", len(tree))
        found.append(Metric("samples", "1", MetricKind.INCLUSIVE, samples))
    return found


def _marker_metrics(rows: Columns, n_nodes: int) -> list[Metric]:
    """Ranges of the process overlap each other and what threads do, so their times must not be added to it."""
    if not len(rows["node"]):
        return []
    return [
        Metric("marker_time", "ns", MetricKind.EXCLUSIVE, _sum(rows, "total_ns", n_nodes)),
        Metric("marker_count", "1", MetricKind.EXCLUSIVE, _sum(rows, "count", n_nodes)),
    ]


def _wait_metrics(rows: Columns, n_nodes: int) -> list[Metric]:
    """Part of the host time: calls that return when the GPU is done."""
    if not len(rows["node"]):
        return []
    return [Metric("sync_time", "ns", MetricKind.INCLUSIVE, _sum(rows, "total_ns", n_nodes))]


def _sum(rows: Columns, column: str, n_nodes: int) -> Int64Array:
    """A column added up at its nodes: int64 [n_nodes]."""
    total = np.zeros(n_nodes, np.int64)
    np.add.at(total, rows["node"], rows[column])
    return total
