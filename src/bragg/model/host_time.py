"""Host time of a call tree from what was measured and what was sampled."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import PurePath

import numpy as np

from bragg.model.profile import Profile
from bragg.model.table import BoolArray, FloatArray, Int64Array
from bragg.model.trace import SliceTable, TrackKind
from bragg.model.transform import with_descendants
from bragg.model.tree import CallTree, FrameKind

# Kernels: those that the host executes itself, where there is no GPU.
_MEASURED_KINDS = (FrameKind.SCOPE, FrameKind.OPERATOR, FrameKind.GPU_API, FrameKind.KERNEL)

WAIT_TIME = "wait_time"
"""The metric of the part of `host_time` in which the thread waited, instead of running."""
_WAITING = "[waiting]"
_BEGIN = re.compile(r"(?:Thread\.)?_bootstrap")

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
    return replace(profile, metrics=metrics, slices=_without_samples(profile, of_main=False))


def of_launching_thread(profile: Profile) -> Profile:
    """The profile with the host's time of the thread that launches most work of GPUs: the main one, if none is known.

    Another thread's is that below the function which threads of Python begin with. What the main thread then does in
    functions, and waits for, is beside it, as is what other threads do in the first case.
    """
    if THREAD_TIME not in profile.metrics or not _others_launch(profile):
        return of_main_thread(profile)
    tree = profile.tree
    is_beside = ((tree.kind == FrameKind.PYTHON) | waiting_nodes(tree)) & ~_in_other_threads(tree)
    sampled = {name: profile.metrics[name] for name in ("host_time", WAIT_TIME) if name in profile.metrics}
    kept = {name: replace(each, own=np.where(is_beside, 0, each.own)) for name, each in sampled.items()}
    return replace(profile, metrics={**profile.metrics, **kept}, slices=_without_samples(profile, of_main=True))


def _others_launch(profile: Profile) -> bool:
    if "gpu_count" not in profile.metrics:
        return False
    launched = np.nan_to_num(profile.own("gpu_count").astype(np.float64))
    return bool(launched[_in_other_threads(profile.tree)].sum() > launched.sum() / 2)


def _in_other_threads(tree: CallTree) -> BoolArray:
    frames = tree.frames
    begins = np.array([_BEGIN.fullmatch(name) is not None for name in frames.name], np.bool_)
    of_threading = np.array([PurePath(file).name == "threading.py" for file in frames.file], np.bool_)
    return with_descendants(tree, (begins & of_threading)[tree.frame])


def _without_samples(profile: Profile, *, of_main: bool) -> SliceTable:
    """Without those of the main thread, whose number is that of the process, or of all others."""
    tracks, slices = profile.tracks, profile.slices
    left_out = (tracks.kind == TrackKind.SAMPLES) & ((tracks.stream == tracks.process) == of_main)
    return slices.take(~left_out[slices.track])


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
