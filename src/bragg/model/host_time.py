"""Host time of a call tree from what was measured and what was sampled."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from bragg.model.profile import Profile
from bragg.model.table import BoolArray, FloatArray, Int64Array
from bragg.model.trace import TrackKind
from bragg.model.tree import CallTree, FrameKind

# Kernels: those that the host executes itself, where there is no GPU.
_MEASURED_KINDS = (FrameKind.SCOPE, FrameKind.OPERATOR, FrameKind.GPU_API, FrameKind.KERNEL)

WAIT_TIME = "wait_time"
"""The metric of the part of `host_time` in which the thread waited, instead of running."""
_WAITING = "[waiting]"

THREAD_TIME = "thread_time"
"""The metric of the part of `host_time` that other threads than the main one ran in functions of Python."""


def waiting_nodes(tree: CallTree) -> BoolArray:
    """Nodes that stand for what their parents waited: bool [n_nodes]."""
    frames = tree.frames
    is_waiting = (frames.kind == FrameKind.STATE) & np.array([name == _WAITING for name in frames.name])
    found: BoolArray = is_waiting[tree.frame]
    found[0] = False
    return found


def of_main_thread(profile: Profile) -> Profile:
    """The profile without `host_time` and samples of other threads, whose functions run beside what a run waits for."""
    if THREAD_TIME not in profile.metrics:
        return profile
    own = profile.own("host_time") - profile.own(THREAD_TIME)
    metrics = {**profile.metrics, "host_time": replace(profile.metric("host_time"), own=own)}
    tracks, slices = profile.tracks, profile.slices
    is_of_other = (tracks.kind == TrackKind.SAMPLES) & (tracks.context != tracks.process)
    return replace(profile, metrics=metrics, slices=slices.take(~is_of_other[slices.track]))


def own_work(profile: Profile, metric: str) -> FloatArray:
    """Own values of a metric that decide what is hot: `host_time` counts without the time spent waiting: [n_nodes]."""
    own = np.asarray(profile.own(metric), np.float64)
    return own - profile.own(WAIT_TIME) if metric == "host_time" and WAIT_TIME in profile.metrics else own


def own_host_time(
    tree: CallTree, measured_ns: Int64Array, is_measured: BoolArray, sampled_ns: Int64Array
) -> Int64Array:
    """Own host time of each node, so that a node's time is its own plus its children's.

    A measured node has at least its measured time. A sample at a line that calls an operator is the operator's time, so
    elsewhere only samples beyond the measured children count: beyond what of their time no sample inside of them tells.
    What was waited, which is sampled at a node of its own below the line, is what remains beside the line's work: an
    operator that waits is measured. A measured state stands below what it belongs to, like the backward pass of an
    operator, but did not run inside it.

    Args:
        tree: The call tree.
        measured_ns: [n_nodes], including what ran inside.
        is_measured: [n_nodes].
        sampled_ns: [n_nodes], of the node alone.
    """
    own = np.zeros(len(tree), np.int64)
    inside = np.zeros(len(tree), np.int64)
    remaining = np.zeros(len(tree), np.int64)
    unsampled_inside = np.zeros(len(tree), np.int64)
    sampled_inside = np.zeros(len(tree), np.int64)
    is_measured_kind = np.isin(tree.kind, _MEASURED_KINDS)
    runs_inside_parent = ~(is_measured & (tree.kind == FrameKind.STATE))
    is_waiting = waiting_nodes(tree) & ~is_measured
    waiting = np.flatnonzero(is_waiting)
    waited_ns = np.zeros(len(tree), np.int64)
    np.add.at(waited_ns, tree.parent[waiting], sampled_ns[waiting])
    for level in reversed(tree.levels):
        sampled = sampled_ns[level] + waited_ns[level] - unsampled_inside[level]
        beyond = np.maximum(np.where(is_measured[level], measured_ns[level] - inside[level], sampled), 0)
        worked = np.where(is_measured[level], beyond - waited_ns[level], np.minimum(beyond, sampled_ns[level]))
        own[level] = np.where(is_waiting[level], 0, np.maximum(worked, 0))
        inside[level] += beyond - own[level]  # what is left for the waiting child
        remaining[level] = beyond - own[level]
        inner = level[(level != 0) & runs_inside_parent[level] & ~is_waiting[level]]
        total = own[inner] + inside[inner]
        np.add.at(inside, tree.parent[inner], total)
        all_samples = sampled_ns[inner] + waited_ns[inner] + sampled_inside[inner]
        np.add.at(sampled_inside, tree.parent[inner], all_samples)
        unsampled = np.where(is_measured_kind[inner], np.maximum(total - all_samples, 0), 0)
        np.add.at(unsampled_inside, tree.parent[inner], unsampled)
    parents, first = np.unique(tree.parent[waiting], return_index=True)
    own[waiting[first]] = remaining[parents]
    return own
