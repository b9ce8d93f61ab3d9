"""A profile of the steady state alone: what its timeline says of that part of the run."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from bragg.analyze.innermost import parents_of
from bragg.analyze.wall.parts import wall_parts
from bragg.analyze.wall.wall_time import Steady
from bragg.model import Combine, FrameKind, Metric, MetricKind, Profile, TrackKind
from bragg.model.durations import DurationTable, buckets_of
from bragg.model.table import BoolArray, Int32Array, Int64Array
from bragg.model.trace import SliceTable

MOSTLY_IDLE = 0.5
"""If a device is busy for a smaller share of the steady state than this, the host's time matters."""

_BOTH_SIDES = ("host_time", "gpu_time", "gpu_count")


def is_host_first(profile: Profile, steady: Steady | None) -> bool:
    """Whether the GPU was mostly idle in the steady state, so that the host's time says more than the GPU's."""
    if steady is None or not steady.busy or max(steady.busy.values()) >= MOSTLY_IDLE:
        return False
    return all(name in profile.metrics and profile.total(name) > 0 for name in _BOTH_SIDES)


def during(slices: SliceTable, start_ns: int, end_ns: int) -> SliceTable:
    """What of the slices lies between two times: cut at both."""
    begins = np.maximum(slices.start_ns, start_ns)
    lasts = np.minimum(slices.start_ns + slices.duration_ns, end_ns) - begins
    inside = (lasts > 0) | ((lasts == 0) & (slices.duration_ns == 0))
    return slices.replace(start_ns=begins, duration_ns=np.maximum(lasts, 0)).take(inside)


def steady_profile(profile: Profile, steady: Steady) -> Profile | None:
    """The GPU time of the steady state, and the host time of what was measured: scopes, operators, API calls.

    Work that an end of the steady state cuts has the part inside it as its time. What began in the steady state is
    counted, and its whole durations make the extremes and percentiles.

    The time in which no thread was in anything that was measured, but in Python between, is the root's.

    Returns:
        The same tree with `gpu_time`, `gpu_count`, their extremes and `host_time`; None: there is no timeline.
    """
    if not len(profile.slices):
        return None
    slices = during(profile.slices, steady.begins_ns, steady.ends_ns)
    kind = profile.tracks.kind[slices.track]
    on_gpu, on_host = slices.take(kind == TrackKind.GPU_STREAM), slices.take(kind == TrackKind.HOST_THREAD)
    n_nodes = len(profile.tree)
    began = _began(profile, steady)
    metrics = [
        Metric("gpu_time", "ns", MetricKind.INCLUSIVE, _by_node(on_gpu.node, on_gpu.duration_ns, n_nodes)),
        Metric("gpu_count", "1", MetricKind.INCLUSIVE, np.bincount(began.node, minlength=n_nodes)),
        _extreme("gpu_time_min", began, n_nodes, Combine.MIN),
        _extreme("gpu_time_max", began, n_nodes, Combine.MAX),
    ]
    if len(on_host):
        caller = np.where(_is_launched(profile), profile.tree.parent, np.arange(n_nodes))
        own_ns = _by_node(caller[on_host.node], own_times(on_host), n_nodes)
        own_ns[0] += max(steady.duration_ns - covered_ns(on_host), 0)
        metrics.append(Metric("host_time", "ns", MetricKind.INCLUSIVE, own_ns))
    durations = _durations(profile, began)
    return replace(profile, metrics={metric.name: metric for metric in metrics}, slices=slices, durations=durations)


def _began(profile: Profile, steady: Steady) -> SliceTable:
    """What began on GPUs in the steady state, whole."""
    slices = profile.slices
    on_gpu = (profile.tracks.kind == TrackKind.GPU_STREAM)[slices.track]
    return slices.take(on_gpu & (slices.start_ns >= steady.begins_ns) & (slices.start_ns < steady.ends_ns))


def covered_ns(slices: SliceTable) -> int:
    """How long any of the slices lasted: else threads ran, or waited in, what was not measured."""
    if not len(slices):
        return 0
    ordered = slices.take(np.argsort(slices.start_ns, kind="stable"))
    until_ns = np.maximum.accumulate(ordered.start_ns + ordered.duration_ns)
    before_ns = np.append(ordered.start_ns[:1], until_ns[:-1])
    return int(np.maximum(until_ns - np.maximum(before_ns, ordered.start_ns), 0).sum())


def _is_launched(profile: Profile) -> BoolArray:
    """Nodes of what runs on the GPU: the time of a launch is its caller's: [n_nodes]."""
    return np.isin(profile.tree.kind, (FrameKind.KERNEL, FrameKind.MEMORY))


def _durations(profile: Profile, slices: SliceTable) -> DurationTable:
    kernels = slices.take((profile.tree.kind == FrameKind.KERNEL)[slices.node])
    one = np.ones(len(kernels), np.int64)
    frame = profile.tree.frame[kernels.node]
    return DurationTable(frame, buckets_of(kernels.duration_ns), one, kernels.start_ns).combined()


def _extreme(name: str, slices: SliceTable, n_nodes: int, combine: Combine) -> Metric:
    metric = Metric(name, "ns", MetricKind.PROPERTY, np.full(n_nodes, np.nan), combine)
    combine.ufunc.at(metric.own, slices.node, slices.duration_ns)
    return metric


def _by_node(node: Int32Array, values: Int64Array, n_nodes: int) -> Int64Array:
    total = np.zeros(n_nodes, np.int64)
    np.add.at(total, node, values)
    return total


def own_times(slices: SliceTable) -> Int64Array:
    """Duration of each slice without those inside it: ns [n_slices], ordered as `SliceTable` is."""
    own_ns: Int64Array = slices.duration_ns.copy()
    for track in np.unique(slices.track).tolist():
        rows = np.flatnonzero(slices.track == track)
        rows = rows[np.lexsort((-slices.duration_ns[rows], slices.start_ns[rows]))]
        parent = parents_of(slices.start_ns[rows], slices.start_ns[rows] + slices.duration_ns[rows])
        inside = parent >= 0
        inner_ns = np.bincount(parent[inside], weights=slices.duration_ns[rows[inside]], minlength=len(rows))
        own_ns[rows] -= inner_ns.astype(np.int64)
    own_ns[own_ns < 0] = 0
    return own_ns


def steady_part(profile: Profile) -> Profile:
    """The steady state of a run whose GPU time it tells, else the whole run."""
    parts = wall_parts(profile)
    part = steady_profile(profile, parts.steady) if parts and parts.steady else None
    return part if part is not None and part.total("gpu_time") > 0 else profile
