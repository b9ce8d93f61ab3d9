"""What the slices of a timeline add up to."""

from __future__ import annotations

from typing import Any

import numpy as np

from bragg.model import (
    CallTree,
    Combine,
    DurationTable,
    Metric,
    MetricKind,
    SliceTable,
    TrackKind,
    TrackTable,
)
from bragg.model.durations import buckets_of
from bragg.model.host_time import own_host_time
from bragg.model.table import Int32Array, Int64Array


def metrics_of_slices(tree: CallTree, tracks: TrackTable, slices: SliceTable) -> dict[str, Metric]:
    """Times and counts of GPU work, of host code, and of ranges of the process."""
    kinds = {kind: _on(kind, tracks, slices) for kind in TrackKind}
    found = [
        *_gpu_metrics(tree, kinds[TrackKind.GPU_STREAM]),
        *_host_metrics(tree, kinds[TrackKind.HOST_THREAD]),
        *_marker_metrics(tree, kinds[TrackKind.RANGES]),
    ]
    return {metric.name: metric for metric in found}


def moved_bytes(n_nodes: int, node: Int32Array, size_bytes: Int64Array) -> dict[str, Metric]:
    """`gpu_bytes`: what copies and sets moved, by event.

    Args:
        n_nodes: Nodes of the tree.
        node: [n_events].
        size_bytes: [n_events].
    """
    if not size_bytes.any():
        return {}
    own = np.zeros(n_nodes, np.int64)
    np.add.at(own, node, size_bytes)
    return {"gpu_bytes": Metric("gpu_bytes", "B", MetricKind.INCLUSIVE, own)}


def durations_of_slices(tree: CallTree, tracks: TrackTable, slices: SliceTable) -> DurationTable:
    """How long the GPU work of each frame took, as histograms."""
    on_gpu = _on(TrackKind.GPU_STREAM, tracks, slices)
    if not len(on_gpu):
        return DurationTable.empty()
    ones = np.ones(len(on_gpu), np.int64)
    return DurationTable(tree.frame[on_gpu.node], buckets_of(on_gpu.duration_ns), ones, on_gpu.start_ns).combined()


def gpu_facts(tracks: TrackTable, slices: SliceTable) -> dict[str, Any]:
    """`gpu_first_ns`, `gpu_last_ns` and, by device, `gpu_busy_ns`; empty without GPU work."""
    on_gpu = _on(TrackKind.GPU_STREAM, tracks, slices)
    if not len(on_gpu):
        return {}
    device = tracks.device[on_gpu.track]
    busy_ns = {str(number): _covered_ns(on_gpu.take(device == number)) for number in np.unique(device).tolist()}
    last_ns = int((on_gpu.start_ns + on_gpu.duration_ns).max())
    return {"gpu_first_ns": int(on_gpu.start_ns.min()), "gpu_last_ns": last_ns, "gpu_busy_ns": busy_ns}


def _covered_ns(slices: SliceTable) -> int:
    """How long at least one of them ran."""
    ordered = slices.take(np.argsort(slices.start_ns, kind="stable"))
    latest = np.maximum.accumulate(ordered.start_ns + ordered.duration_ns)
    begins = np.maximum(ordered.start_ns[1:], latest[:-1])
    return int(latest[0] - ordered.start_ns[0] + np.maximum(latest[1:] - begins, 0).sum())


def _on(kind: TrackKind, tracks: TrackTable, slices: SliceTable) -> SliceTable:
    return slices.take(tracks.kind[slices.track] == kind)


def _gpu_metrics(tree: CallTree, on_gpu: SliceTable) -> list[Metric]:
    if not len(on_gpu):
        return []
    extremes = [
        Metric(name, "ns", MetricKind.PROPERTY, np.full(len(tree), np.nan), combine)
        for name, combine in (("gpu_time_min", Combine.MIN), ("gpu_time_max", Combine.MAX))
    ]
    for metric in extremes:
        metric.combine.ufunc.at(metric.own, on_gpu.node, on_gpu.duration_ns)
    return [
        Metric("gpu_time", "ns", MetricKind.INCLUSIVE, _sum(tree, on_gpu)),
        Metric("gpu_count", "1", MetricKind.INCLUSIVE, _count(tree, on_gpu)),
        *extremes,
    ]


def _host_metrics(tree: CallTree, on_host: SliceTable) -> list[Metric]:
    if not len(on_host):
        return []
    count = _count(tree, on_host)
    own = own_host_time(tree, _sum(tree, on_host), count > 0, np.zeros(len(tree), np.int64))
    return [
        Metric("host_time", "ns", MetricKind.INCLUSIVE, own),
        Metric("host_count", "1", MetricKind.EXCLUSIVE, count),
    ]


def _marker_metrics(tree: CallTree, ranges: SliceTable) -> list[Metric]:
    if not len(ranges):
        return []
    return [
        Metric("marker_time", "ns", MetricKind.EXCLUSIVE, _sum(tree, ranges)),
        Metric("marker_count", "1", MetricKind.EXCLUSIVE, _count(tree, ranges)),
    ]


def _sum(tree: CallTree, slices: SliceTable) -> Int64Array:
    total = np.zeros(len(tree), np.int64)
    np.add.at(total, slices.node, slices.duration_ns)
    return total


def _count(tree: CallTree, slices: SliceTable) -> Int64Array:
    return np.bincount(slices.node, minlength=len(tree)).astype(np.int64)
