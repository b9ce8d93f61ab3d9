"""The one operation under every change of a call tree: nodes move, vanish or become one, and their data follows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from bragg.model.ids import NodeId
from bragg.model.inside_kernels import READING
from bragg.model.kernel_name import base_name, operator_name
from bragg.model.profile import Profile
from bragg.model.table import BoolArray, Int32Array, Int64Array
from bragg.model.tree import CallTree, FrameKind, FrameTable

__all__ = ["Regrouping", "fold_specializations", "regroup", "with_renamed_frames"]


@dataclass(frozen=True, eq=False)
class Regrouping:
    """A new tree, and where the old nodes went.

    Attributes:
        tree: The tree after the change.
        target: int32 [n_nodes before]: node that holds the old node's data; -1 where the data is dropped.
    """

    tree: CallTree
    target: Int32Array

    def apply(self, profile: Profile) -> Profile:
        """The profile over the new tree, with the frames that are still used."""
        kept = [item for item in profile.carried if item.node is None or self.target[item.node] >= 0]
        node = self.target[profile.slices.node]
        slices = profile.slices.replace(node=node)
        used = np.unique(np.concatenate([self.tree.frame, profile.kernels.frame, profile.durations.frame]))
        frame = np.searchsorted(used, self.tree.frame).astype(np.int32)
        return replace(
            profile,
            tree=CallTree(self.tree.parent, frame, self.tree.frames.take(used)),
            kernels=profile.kernels.replace(frame=np.searchsorted(used, profile.kernels.frame)),
            durations=profile.durations.replace(frame=np.searchsorted(used, profile.durations.frame)),
            metrics={name: metric.gather(self.target, len(self.tree)) for name, metric in profile.metrics.items()},
            inputs=profile.inputs.moved(self._operators(profile)),
            idle=profile.idle.moved(self.target),
            slices=slices if (node >= 0).all() else slices.take(node >= 0),
            carried=[finding.moved(lambda node: NodeId(int(self.target[node]))) for finding in kept],
        )

    def _operators(self, profile: Profile) -> Int32Array:
        """`target` of the nodes that stay what they are; -1 of those whose data another one holds."""
        stays = (self.target >= 0) & (self.tree.frame[self.target] == profile.tree.frame)
        return np.where(stays, self.target, np.int32(-1))


def regroup(
    tree: CallTree,
    *,
    folded: BoolArray | None = None,
    dropped: BoolArray | None = None,
    silenced: BoolArray | None = None,
) -> Regrouping:
    """Remove nodes; siblings with the same frame become one node.

    Args:
        tree: The tree to change.
        folded: [n_nodes]: nodes that vanish; their data and children go to the nearest ancestor that stays.
        dropped: [n_nodes]: nodes that vanish with their whole subtree and its data.
        silenced: [n_nodes]: nodes that stay without their own data.
    """
    return _Regrouper(tree, _inner_mask(tree, folded), _inner_mask(tree, dropped)).result(silenced)


def fold_specializations(profile: Profile) -> Profile:
    """The specializations of a kernel as the kernel, and the shapes of an operator as the operator, where siblings."""
    frames = profile.tree.frames
    general = {FrameKind.KERNEL: base_name, FrameKind.OPERATOR: operator_name}
    names = [
        general[FrameKind(kind)](name) if kind in general else name
        for kind, name in zip(frames.kind.tolist(), frames.name, strict=True)
    ]
    folded = with_renamed_frames(profile, frames.replace(name=names))
    return regroup(folded.tree).apply(folded)


def without_readings(profile: Profile) -> Profile:
    """Without the copies by which clocks in kernels are read, which may take longer than the program's own work."""
    tree = profile.tree
    if READING not in tree.frames.name:
        return profile
    is_reading = (tree.kind == FrameKind.STATE) & np.array([name == READING for name in tree.frames.name])[tree.frame]
    return regroup(tree, dropped=is_reading).apply(profile)


def with_renamed_frames(profile: Profile, renamed: FrameTable) -> Profile:
    """The profile with other names of its frames; those that became equal are one, siblings stay apart."""
    first = _first_rows(renamed)
    return replace(
        profile,
        tree=CallTree(profile.tree.parent, first[profile.tree.frame], renamed),
        kernels=profile.kernels.replace(frame=first[profile.kernels.frame]).combined(),
        durations=profile.durations.replace(frame=first[profile.durations.frame]).combined(),
    )


def _first_rows(frames: FrameTable) -> Int32Array:
    """For each frame the first row that equals it: int32 [n_frames]."""
    rows: dict[tuple[int, str, str, int, int], int] = {}
    keys = zip(
        frames.kind.tolist(), frames.name, frames.file, frames.line.tolist(), frames.device.tolist(), strict=True
    )
    return np.array([rows.setdefault(key, row) for row, key in enumerate(keys)], np.int32)


# Up to here a dictionary takes 2 to 5 us where sorting takes 18: levels of deep trees have few nodes.
_FEW = 16


class _Regrouper:
    """Numbers the new nodes level by level, so that parents precede children."""

    def __init__(self, tree: CallTree, folded: BoolArray, dropped: BoolArray) -> None:
        self._tree = tree
        self._gone = folded | dropped
        self._dropped = dropped
        self._anchor = np.arange(len(tree), dtype=np.int32)
        self._depth = np.zeros(len(tree), np.int32)
        for level in tree.levels[1:]:
            self._settle(level)

    def _settle(self, level: Int64Array) -> None:
        """Find each node's nearest staying node (itself or above) and its new depth, from those of its parent."""
        above = self._tree.parent[level]
        self._dropped[level] |= self._dropped[above]
        self._gone[level] |= self._dropped[level]
        self._anchor[level] = np.where(self._gone[level], self._anchor[above], level)
        self._depth[level] = self._depth[above] + ~self._gone[level]

    @cached_property
    def _new_levels(self) -> list[Int64Array]:
        staying = np.flatnonzero(~self._gone)
        depth = self._depth[staying]
        order = np.argsort(depth, kind="stable")
        return np.split(staying[order], np.cumsum(np.bincount(depth))[:-1])

    def result(self, silenced: BoolArray | None) -> Regrouping:
        target = np.zeros(len(self._tree), np.int32)
        parents, frames = [np.array([-1], np.int32)], [self._tree.frame[:1]]
        n_nodes = 1
        for level in self._new_levels[1:]:
            above = target[self._anchor[self._tree.parent[level]]]
            frame = self._tree.frame[level]
            first, group = _groups(above.astype(np.int64) * len(self._tree.frames) + frame)
            target[level] = n_nodes + group
            parents.append(above[first])
            frames.append(frame[first])
            n_nodes += len(first)
        target = target[self._anchor]
        target[self._dropped if silenced is None else self._dropped | silenced] = -1
        tree = CallTree(np.concatenate(parents), np.concatenate(frames), self._tree.frames)
        return Regrouping(tree, target)


def _groups(keys: Int64Array) -> tuple[Int64Array, Int64Array]:
    """Equal keys get equal numbers, by first appearance.

    Returns:
        The index of each group's first key, ascending, and each key's group.
    """
    if len(keys) <= _FEW:
        number: dict[int, int] = {}
        group = [number.setdefault(key, len(number)) for key in keys.tolist()]
        return np.array([group.index(each) for each in range(len(number))], np.int64), np.array(group, np.int64)
    _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    return first[order], rank[inverse.reshape(-1)]


def _inner_mask(tree: CallTree, mask: BoolArray | None) -> BoolArray:
    """A copy of a mask that spares the root."""
    inner = np.zeros(len(tree), np.bool_) if mask is None else mask.copy()
    inner[0] = False
    return inner
