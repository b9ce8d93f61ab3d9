"""The one operation under every change of a call tree: nodes move, vanish or become one, and their data follows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from bragg.model.ids import NodeId
from bragg.model.kernels.inside import READING
from bragg.model.kernels.names import base_name, operator_name
from bragg.model.profile import Profile
from bragg.model.table import BoolArray, Int32Array, Int64Array
from bragg.model.tree import CallTree, FrameKind, FrameTable


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
        is_used = np.zeros(len(self.tree.frames), np.bool_)
        for frames in (self.tree.frame, profile.kernels.frame, profile.durations.frame):
            is_used[frames] = True
        used = np.flatnonzero(is_used)
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
    general: dict[FrameKind, Callable[[str], str]] = {
        FrameKind.KERNEL: base_name,
        FrameKind.OPERATOR: operator_name,
    }
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


# Nodes a level up to which a dictionary, 0.3 us a node, is faster than sorting, 30 us a level: trees of deep recursion.
_FEW = 64


class _Regrouper:
    """Numbers the new nodes level by level, so that parents precede children."""

    def __init__(self, tree: CallTree, folded: BoolArray, dropped: BoolArray) -> None:
        self._tree = tree
        parent = np.maximum(tree.parent, 0)
        self._dropped = dropped
        for above in _doubling(parent):
            self._dropped |= self._dropped[above]
        gone = folded | self._dropped
        # Of each node: the nearest that stays, itself or above, and how many stay down to it, the root not counted.
        self._anchor = np.where(gone, parent, np.arange(len(tree), dtype=np.int32))
        self._depth = (~gone).astype(np.int32)
        self._depth[0] = 0
        for above in _doubling(parent):
            self._depth += self._depth[above]
            self._anchor = self._anchor[self._anchor]
        self._staying = np.flatnonzero(~gone)
        self._staying = self._staying[np.argsort(self._depth[self._staying], kind="stable")]

    def result(self, silenced: BoolArray | None) -> Regrouping:
        widths = np.bincount(self._depth[self._staying])
        is_narrow = len(self._staying) <= _FEW * len(widths)
        parent, frame, target = self._one_by_one() if is_narrow else self._by_level(widths)
        target = target[self._anchor]
        target[self._dropped if silenced is None else self._dropped | silenced] = -1
        return Regrouping(CallTree(parent, frame, self._tree.frames), target)

    def _by_level(self, widths: Int64Array) -> tuple[Int32Array, Int32Array, Int32Array]:
        """Parent and frame of each new node; of each old one that stays the new."""
        target = np.zeros(len(self._tree), np.int32)
        parents, frames = [np.array([-1], np.int32)], [self._tree.frame[:1]]
        n_nodes = 1
        for level in np.split(self._staying, np.cumsum(widths)[:-1])[1:]:
            above = target[self._anchor[self._tree.parent[level]]]
            frame = self._tree.frame[level]
            first, group = _groups(above.astype(np.int64) * len(self._tree.frames) + frame)
            target[level] = n_nodes + group
            parents.append(above[first])
            frames.append(frame[first])
            n_nodes += len(first)
        return np.concatenate(parents), np.concatenate(frames), target

    def _one_by_one(self) -> tuple[Int32Array, Int32Array, Int32Array]:
        """As `_by_level`."""
        nodes = self._staying[1:]
        above, frame = self._anchor[self._tree.parent[nodes]], self._tree.frame[nodes]
        number = {(-1, int(self._tree.frame[0])): 0}
        target = [0] * len(self._tree)
        for node, parent, key in zip(nodes.tolist(), above.tolist(), frame.tolist(), strict=True):
            target[node] = number.setdefault((target[parent], key), len(number))
        parents, frames = np.array(list(number), np.int32).T.copy()
        return parents, frames, np.array(target, np.int32)


def _doubling(parent: Int32Array) -> Iterator[Int32Array]:
    """The nodes 1, 2, 4, ... above each node, the root where there are fewer, until all are the root."""
    above = parent
    while above.any():
        yield above
        above = above[above]


def _groups(keys: Int64Array) -> tuple[Int64Array, Int64Array]:
    """Equal keys get equal numbers, by first appearance.

    Returns:
        The index of each group's first key, ascending, and each key's group.
    """
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
