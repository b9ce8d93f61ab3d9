"""Views of a profile: the same data over fewer nodes."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

import numpy as np

from bragg.errors import UsageError
from bragg.model.metric import Metric
from bragg.model.profile import Profile
from bragg.model.regroup import regroup
from bragg.model.table import BoolArray, Int32Array, Int64Array
from bragg.model.tree import CallTree, FrameTable

__all__ = [
    "FlatTable",
    "flat",
    "fold",
    "group_by_name",
    "has_data",
    "innermost",
    "prune",
    "select",
    "threshold",
    "with_ancestors",
    "with_descendants",
]


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


def with_descendants(tree: CallTree, mask: BoolArray) -> BoolArray:
    """The marked nodes and all nodes below them: [n_nodes]."""
    marked: BoolArray = mask.copy()
    for level in tree.levels[1:]:
        marked[level] |= marked[tree.parent[level]]
    return marked


def has_data(profile: Profile) -> BoolArray:
    """Nodes that a metric or a slice says something about: [n_nodes]."""
    mask = np.zeros(len(profile.tree), np.bool_)
    for metric in profile.metrics.values():
        mask |= metric.has_value
    mask[profile.slices.node] = True
    return mask


def prune(profile: Profile) -> Profile:
    """Without the subtrees that hold no data."""
    useful = with_ancestors(profile.tree, has_data(profile))
    return regroup(profile.tree, dropped=~useful).apply(profile)


def fold(profile: Profile, hidden: BoolArray) -> Profile:
    """Without the hidden nodes; what was theirs belongs to the nearest ancestor that stays.

    Args:
        profile: The profile.
        hidden: [n_nodes]; the root stays in any case.
    """
    return regroup(profile.tree, folded=hidden).apply(profile)


def threshold(profile: Profile, metric: str, fraction: float) -> Profile:
    """Without the nodes whose inclusive value is below a fraction of the total; totals stay.

    Raises:
        UsageError: The profile has no such metric.
    """
    values = profile.inclusive(metric)
    return fold(profile, values < fraction * values[0])


def select(profile: Profile, *, include: str | None = None, exclude: str | None = None) -> Profile:
    """Only what ran under, or above, nodes that match.

    Args:
        profile: The profile.
        include: Regular expression that a label must contain: keeps the matching nodes with all that is below them,
            and the path to them without its own data.
        exclude: Regular expression; matching nodes are dropped with all that is below them.

    Raises:
        UsageError: An expression is malformed.
    """
    tree = profile.tree
    none = np.zeros(len(tree), np.bool_)
    dropped = none if exclude is None else _matches(tree, exclude)
    if include is None:
        return regroup(tree, dropped=dropped).apply(profile)
    wanted = with_descendants(tree, _matches(tree, include)) & ~with_descendants(tree, dropped)
    return regroup(tree, dropped=~with_ancestors(tree, wanted), silenced=~wanted).apply(profile)


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


def _matches(tree: CallTree, pattern: str) -> BoolArray:
    try:
        search = re.compile(pattern).search
    except re.error as error:
        raise UsageError(f"bad regular expression {pattern!r}: {error}") from error
    labels = map(tree.frames.label, range(len(tree.frames)))
    return np.array([search(label) is not None for label in labels], np.bool_)[tree.frame]
