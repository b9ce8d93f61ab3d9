"""What a program repeats, as one: siblings that a number tells apart, and the path to a launch within its graph."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping

import numpy as np

from bragg.model import CallTree, FrameKind, FrameTable, MetricKind, Profile
from bragg.model.ids import NodeId
from bragg.model.regroup import Regrouping, regroup
from bragg.model.table import BoolArray, FloatArray, Int64Array
from bragg.views.text.folding import FoldedProfile
from bragg.views.text.folding_rules import library_of

_CAPTURED_AT = "<captured_at>"
_NUMBER = re.compile(r"(?<![A-Za-z0-9])\d+(?![A-Za-z0-9])")
# Two, such as the two linear layers of an MLP, are named one by one.
_LEAST = 3


def with_repeats_folded(folded: FoldedProfile, metric: str) -> FoldedProfile:
    """Numbered siblings as one node that names the longest, and of captures' paths what the launch's path lacks.

    Args:
        folded: With its libraries put together.
        metric: What decides which one is the longest.
    """
    after = _regrouped(folded, regroup(folded.profile.tree, folded=_repeated_captures(folded)))
    renamed = _Numbered(after.profile, metric).renamed()
    return _regrouped(after, regroup(renamed)) if renamed is not after.profile.tree else after


def _regrouped(folded: FoldedProfile, regrouping: Regrouping) -> FoldedProfile:
    n_folded = np.zeros(len(regrouping.tree), np.int64)
    stays = regrouping.tree.frame[regrouping.target] == folded.profile.tree.frame
    np.maximum.at(n_folded, regrouping.target, np.where(stays, folded.n_folded, 0))
    return FoldedProfile(regrouping.apply(folded.profile), n_folded)


def _repeated_captures(folded: FoldedProfile) -> BoolArray:
    """Nodes below the place of a capture that repeat the path of the launch above it: [n_nodes]."""
    tree = folded.profile.tree
    gone = np.zeros(len(tree), np.bool_)
    places = np.flatnonzero(np.array([name == _CAPTURED_AT for name in tree.frames.name], np.bool_)[tree.frame])
    for place in places.tolist():
        wanted = [tree.label(node) for node in tree.path(NodeId(place))[1:-1] if not _is_library(folded, node)]
        open_nodes = [(child, 0) for child in tree.children(place).tolist()]
        while open_nodes:
            node, n_seen = open_nodes.pop()
            is_next = n_seen < len(wanted) and tree.label(node) == wanted[n_seen]
            if n_seen < len(wanted) and (is_next or _is_library(folded, node)):
                gone[node] = True
                open_nodes += [(child, n_seen + is_next) for child in tree.children(node).tolist()]
    return gone


def _is_library(folded: FoldedProfile, node: NodeId) -> bool:
    tree = folded.profile.tree
    file = tree.frames.file[tree.frame[node]]
    return bool(folded.n_folded[node]) or (tree.kind[node] == FrameKind.PYTHON and bool(library_of(file)))


class _Numbered:
    """Gives siblings that differ in one number one name, from the root down: `Step.N x 3, longest Step.1`."""

    def __init__(self, profile: Profile, metric: str) -> None:
        self._profile, self._tree = profile, profile.tree
        self._attributes: Mapping[str, Mapping[str, str]] = profile.run.attributes
        self._weight = _weight(profile, metric)
        self._name: dict[NodeId, str] = {}  # of nodes below a collapsed one: what they are called
        self._prefix: dict[int, tuple[str, str]] = {}  # of collapsed nodes: their name, and its pattern
        self._frame = self._tree.frame.copy()
        self._names: list[str] = []
        self._rows: dict[str, int] = {}

    def renamed(self) -> CallTree:
        """The tree with its new names; the same one where nothing is repeated."""
        tree, frames = self._tree, self._tree.frames
        has_number = np.array([bool(_NUMBER.search(name)) for name in frames.name], np.bool_)
        numbered = (has_number & np.equal(frames.kind, FrameKind.SCOPE))[tree.frame]
        if not numbered.any():
            return tree
        same = np.zeros(len(tree), np.int64)  # nodes that will be one have one number
        ids: dict[tuple[int, int], int] = {(0, int(tree.frame[0])): 0}
        for level in tree.levels[1:]:
            rows = level[numbered[level]]
            self._collapse(rows, same)
            parents, frame = same[tree.parent[level]].tolist(), self._frame[level].tolist()
            same[level] = [ids.setdefault(key, len(ids)) for key in zip(parents, frame, strict=True)]
        if not self._names:
            return tree
        return CallTree(
            tree.parent,
            self._frame,
            FrameTable.concatenate([frames, FrameTable.of_names(FrameKind.SCOPE, self._names)]),
        )

    def _collapse(self, rows: Int64Array, same: Int64Array) -> None:
        """Rename the scopes of one level whose names have numbers.

        Args:
            rows: These scopes.
            same: [n_nodes]: a number for each node above; nodes that become one have the same.
        """
        groups: dict[tuple[int, str, str], list[NodeId]] = defaultdict(list)
        for node in rows.tolist():
            name = self._called(node)
            for number in _NUMBER.finditer(name):
                groups[int(same[self._tree.parent[node]]), name[: number.start()], name[number.end() :]].append(node)
        for (_, before, after), nodes in sorted(groups.items(), key=lambda item: -len(item[1])):
            names = {node: self._called(node) for node in nodes if node not in self._prefix}
            if len(set(names.values())) >= _LEAST:
                self._put_together(f"{before}N{after}", names)
        for node in rows.tolist():
            if node not in self._prefix and (name := self._called(node)) != self._tree.label(node):
                self._frame[node] = self._row(name)

    def _put_together(self, pattern: str, names: Mapping[NodeId, str]) -> None:
        row = self._row(self._text(pattern, names))
        for node in names:
            self._prefix[node] = (self._tree.label(node), pattern)
            self._frame[node] = row

    def _called(self, node: NodeId) -> str:
        """The name of a scope, with the names of collapsed scopes above in it."""
        if node not in self._name:
            name, above = self._tree.label(node), int(self._tree.parent[node])
            while above > 0:
                if above in self._prefix:
                    original, pattern = self._prefix[above]
                    name = pattern + name.removeprefix(original) if name.startswith(f"{original}.") else name
                    break
                above = int(self._tree.parent[above])
            self._name[node] = name
        return self._name[node]

    def _text(self, pattern: str, names: Mapping[NodeId, str]) -> str:
        """`GPT2Block x 6: transformer.h.N, longest 3`."""
        total: dict[str, float] = defaultdict(float)
        for node, name in names.items():
            total[name] += self._weight[node]
        longest = max(total, key=lambda name: total[name])
        number = _differing(longest, pattern)
        classes = {self._attributes.get(self._tree.label(node), {}).get("module", "") for node in names}
        module = classes.pop() if len(classes) == 1 else ""
        text = f"{module} x {len(total)}: {pattern}" if module else f"{pattern} x {len(total)}"
        return f"{text}, longest {number}" if total[longest] else text

    def _row(self, name: str) -> int:
        if name not in self._rows:
            self._rows[name] = len(self._tree.frames) + len(self._names)
            self._names.append(name)
        return self._rows[name]


def _differing(name: str, pattern: str) -> str:
    """The number in a name for which a pattern has N."""
    n_before = next(place for place in range(len(name)) if name[place] != pattern[place])
    found = _NUMBER.match(name, n_before)
    return found[0] if found else ""


def _weight(profile: Profile, metric: str) -> FloatArray:
    known = profile.metrics.get(metric)
    if known is None or known.kind is not MetricKind.INCLUSIVE:
        return np.zeros(len(profile.tree))
    return np.asarray(profile.inclusive(metric), np.float64)
