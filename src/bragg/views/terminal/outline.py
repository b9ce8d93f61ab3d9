"""Which call paths are shown: the hottest that fit."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from bragg.model import CallTree
from bragg.model.ids import ROOT, NodeId
from bragg.model.table import BoolArray, FloatArray, Int64Array

# A caller is put on one line with the only thing it calls when its own share is below this.
_OWN_SHARE_IN_CHAIN = 0.005


@dataclass(eq=False)
class OutlineRow:
    """One line of the outline, and what hangs below it.

    Attributes:
        nodes: A chain of callers and callees that share the line, outermost first.
        depth: Lines between it and the first.
        children: Rows below, in the order to show.
        n_hidden: Nodes directly below that are not shown.
    """

    nodes: tuple[NodeId, ...]
    depth: int
    children: list[OutlineRow] = field(default_factory=list)
    n_hidden: int = 0


@dataclass(frozen=True, eq=False)
class Outline:
    """The chosen rows.

    Attributes:
        root: The first row.
        n_hidden: Nodes with a weight that are not shown.
        hidden_tops: int64, those of them whose parent is shown.
        is_cut: More lines would show more.
        is_deep: More depth would show more.
    """

    root: OutlineRow
    n_hidden: int
    hidden_tops: Int64Array
    is_cut: bool
    is_deep: bool


@dataclass(frozen=True)
class _Limits:
    least: float
    max_depth: int | None
    max_lines: int | None


def outline(
    tree: CallTree,
    weight: FloatArray,
    *,
    foldable: BoolArray,
    least: float = 0.0,
    max_depth: int | None = None,
    max_lines: int | None = None,
    order: Callable[[NodeId], Any] | None = None,
) -> Outline:
    """Choose rows, heaviest first, until the limits are reached.

    Args:
        tree: The tree.
        weight: [n_nodes], at a node no less than at any below it; nodes of weight 0 are never shown.
        foldable: [n_nodes]: nodes that may share a line with the only node below them.
        least: Weight below which nodes are not shown.
        max_depth: Rows below each other, besides the first.
        max_lines: Rows, with those that say how many are hidden.
        order: Sort key of siblings; None for the heaviest first.
    """
    builder = _Builder(tree, weight, foldable, _Limits(least, max_depth, max_lines))
    root = builder.build()
    builder.sort(order or (lambda node: -weight[node]))
    hidden = ~builder.shown & (weight > 0)
    tops = np.flatnonzero(hidden & builder.shown[tree.parent])
    return Outline(root, int(hidden.sum()), tops, builder.is_cut, builder.is_deep)


class _Builder:
    """Grows the outline from the root; the next row is always the heaviest node whose parent is shown."""

    def __init__(self, tree: CallTree, weight: FloatArray, foldable: BoolArray, limits: _Limits) -> None:
        self._tree = tree
        self._weight = weight
        self._foldable = foldable
        self._limits = limits
        self._rows: list[OutlineRow] = []
        self._n_lines = 1
        self._candidates: list[tuple[float, NodeId, OutlineRow]] = []
        self.shown = np.zeros(len(tree), np.bool_)
        self.is_deep = False

    def build(self) -> OutlineRow:
        root = self._add(ROOT, depth=0)
        while self._candidates:
            _, node, parent = self._candidates[0]
            n_lines = self._n_lines + 1 + self._change_of_count_lines(parent)
            if self._limits.max_lines is not None and n_lines > self._limits.max_lines:
                break
            heapq.heappop(self._candidates)
            self._show(node, parent)
            self._n_lines = n_lines
        self._show_last_ones()
        return root

    def _show(self, node: NodeId, parent: OutlineRow) -> None:
        parent.children.append(self._add(node, parent.depth + 1))
        parent.n_hidden -= 1

    def _show_last_ones(self) -> None:
        """A row in place of the line that says that one more is hidden."""
        for candidate in sorted(self._candidates):
            _, node, parent = candidate
            if parent.n_hidden == 1 and parent.children:
                self._candidates.remove(candidate)
                self._show(node, parent)

    @property
    def is_cut(self) -> bool:
        """The lines ended before the rows did."""
        return bool(self._candidates)

    def sort(self, order: Callable[[NodeId], Any]) -> None:
        for row in self._rows:
            row.children.sort(key=lambda child: order(child.nodes[0]))

    def _add(self, node: NodeId, depth: int) -> OutlineRow:
        chain, below = self._chain(node)
        self.shown[chain] = True
        row = OutlineRow(tuple(chain), depth)
        self._rows.append(row)
        heavy = [child for child in below if self._weight[child] >= self._limits.least]
        row.n_hidden = len(heavy)
        if self._limits.max_depth is None or depth < self._limits.max_depth:
            for child in heavy:
                heapq.heappush(self._candidates, (-self._weight[child], child, row))
        else:
            self.is_deep |= bool(heavy)
        return row

    def _chain(self, node: NodeId) -> tuple[list[NodeId], list[NodeId]]:
        """The nodes that share a line, from `node` on, and the nodes below the last."""
        chain, below = [node], self._below(node)
        while (
            len(below) == 1
            and self._foldable[chain[-1]]
            and self._foldable[below[0]]
            and self._weight[below[0]] >= (1 - _OWN_SHARE_IN_CHAIN) * self._weight[node]
        ):
            chain.append(below[0])
            below = self._below(below[0])
        return chain, below

    def _below(self, node: NodeId) -> list[NodeId]:
        children = self._tree.children(node)
        return children[self._weight[children] > 0].tolist()  # type: ignore[no-any-return]

    @staticmethod
    def _change_of_count_lines(parent: OutlineRow) -> int:
        """Some children shown and some hidden: one more line counts the hidden ones."""
        if parent.n_hidden == 1:
            return -1 if parent.children else 0
        return 0 if parent.children else 1
