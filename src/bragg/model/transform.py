"""Nodes chosen by what is above and below them, and profiles with equal names as one."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from bragg.model.metric import Metric
from bragg.model.profile import Profile
from bragg.model.regroup import regroup
from bragg.model.table import BoolArray, Int32Array, Int64Array
from bragg.model.tree import CallTree, FrameTable


def with_ancestors(tree: CallTree, mask: BoolArray) -> BoolArray:
    """The marked nodes and all nodes above them: [n_nodes]."""
    marked: BoolArray = mask.copy()
    for level in reversed(tree.levels[1:]):
        marked[tree.parent[level[marked[level]]]] = True
    return marked


def innermost(tree: CallTree, mark: Int64Array) -> Int64Array:
    """The mark of each node, or of the nearest node above it that has one: [n_nodes]; -1: none.

    Args:
        tree: The call tree.
        mark: [n_nodes]; -1 on nodes without one.
    """
    found: Int64Array = mark.copy()
    for level in tree.levels[1:]:
        found[level] = np.where(found[level] < 0, found[tree.parent[level]], found[level])
    return found


def outermost(tree: CallTree, mask: BoolArray) -> BoolArray:
    """The marked nodes that are not below others: [n_nodes]."""
    below = with_descendants(tree, mask)[tree.parent]
    below[0] = False
    return mask & ~below


def with_descendants(tree: CallTree, mask: BoolArray) -> BoolArray:
    """The marked nodes and all nodes below them: [n_nodes]."""
    marked: BoolArray = mask.copy()
    if marked.any():
        for level in tree.levels[int(tree.depth[marked].min()) + 1 :]:
            marked[level] |= marked[tree.parent[level]]
    return marked


def has_data(profile: Profile) -> BoolArray:
    """Nodes that a metric or a slice says something about: [n_nodes]."""
    mask = np.zeros(len(profile.tree), np.bool_)
    for metric in profile.metrics.values():
        mask |= metric.has_value
    mask[profile.slices.node] = True
    return mask


def group_by_name(profile: Profile) -> Profile:
    """Siblings of the same kind and name as one node, wherever in a file and on whatever device they ran."""
    tree = profile.tree
    representative = _first_of_same_name(tree.frames)
    kernels = profile.kernels.replace(frame=representative[profile.kernels.frame]).combined()
    durations = profile.durations.replace(frame=representative[profile.durations.frame]).combined()
    renamed = CallTree(tree.parent, representative[tree.frame], tree.frames)
    return regroup(renamed).apply(replace(profile, tree=renamed, kernels=kernels, durations=durations))


@dataclass(frozen=True, eq=False)
class FlatTable:
    """What ran, wherever it was called from.

    Attributes:
        frames: One row for each kind and name.
        metrics: By name, own values [n_rows].
    """

    frames: FrameTable
    metrics: dict[str, Metric]


def flat(profile: Profile) -> FlatTable:
    """Own values of each kind and name, added up over all call paths; rows in order of first appearance."""
    representative = _first_of_same_name(profile.tree.frames)[profile.tree.frame]
    rows, row = np.unique(representative, return_inverse=True)
    target = row.reshape(-1)
    metrics = {name: metric.gather(target, len(rows)) for name, metric in profile.metrics.items()}
    return FlatTable(profile.tree.frames.take(rows), metrics)


def _first_of_same_name(frames: FrameTable) -> Int32Array:
    """For each frame the first one of its kind and name: int32 [n_frames]."""
    first: dict[tuple[int, str], int] = {}
    keys = zip(frames.kind.tolist(), frames.name, strict=True)
    return np.array([first.setdefault(key, index) for index, key in enumerate(keys)], np.int32)
