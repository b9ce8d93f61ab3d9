"""What the rows of the tree say, and in which order they stand."""

from __future__ import annotations

import re
from functools import cached_property

import numpy as np

from bragg.model.ids import ROOT, FrameId, NodeId
from bragg.views.terminal.tree_view import TreeView
from bragg.views.text.style import PLAIN, Style
from bragg.views.text.units import share_text

_BAR_WIDTH = 6


class TreeRows:
    """The nodes of a view.

    Args:
        view: What is shown; the rows that it chose for text do not matter here.

    Attributes:
        sort: Which column decides over the order, or their number for the name.
    """

    def __init__(self, view: TreeView) -> None:
        self._view = view
        self._tree = view.tree
        self.sort = 0

    @property
    def sort_name(self) -> str:
        """What decides over the order."""
        return "name" if self.sort == len(self._view.columns) else self._view.columns[self.sort].name

    def next_sort(self) -> None:
        """Order by the next column, and by the name after the last one."""
        self.sort = (self.sort + 1) % (len(self._view.columns) + 1)

    def children(self, node: NodeId) -> list[NodeId]:
        """The children that have anything to show, the largest first."""
        found = [child for child in self._tree.children(node).tolist() if self._is_shown[child]]
        if self.sort == len(self._view.columns):
            return sorted(found, key=self.name)
        values = np.nan_to_num(self._view.columns[self.sort].values, nan=-np.inf)
        return sorted(found, key=lambda child: -values[child])

    def has_children(self, node: NodeId) -> bool:
        """Whether a node has rows below it."""
        return bool(self._is_shown[self._tree.children(node)].any())

    def hottest_path(self, node: NodeId) -> list[NodeId]:
        """The first child, its first child and so on."""
        path = [node]
        while below := self.children(path[-1]):
            path.append(below[0])
        return path

    def path(self, node: NodeId) -> list[NodeId]:
        """The nodes from the root to a node."""
        return self._tree.path(node)

    def name(self, node: NodeId) -> str:
        """Label of a node."""
        return self._view.folded.name(node, self._view.labels)

    def place(self, node: NodeId) -> tuple[str, int]:
        """File and line of a node; empty and 0 when unknown."""
        frame = self._tree.frame_of(node)
        return self._tree.frames.file[frame], int(self._tree.frames.line[frame])

    def numbers(self, node: NodeId, style: Style = PLAIN) -> str:
        """The values of a node, each with its unit, and its share as text and bar."""
        first = self._view.columns[0]
        parts = [f"{column.text(node)} {column.scale.unit}".strip().rjust(9) for column in self._view.columns]
        share = first.share(node)
        if not np.isnan(share):
            parts.insert(1, f"{share_text(share):>7} {style.bar(share, _BAR_WIDTH)}")
        return " ".join(parts)

    def share(self, node: NodeId) -> float:
        """Share of the whole, 0 to 1; 0 where the metric has none."""
        share = self._view.columns[0].share(node)
        return 0.0 if np.isnan(share) else share

    def header(self) -> str:
        """Names of the columns, and the metric that decides the order."""
        names = ", ".join(column.name for column in self._view.columns)
        return f"{names}; ordered by {self.sort_name}"

    def matches(self, query: str) -> list[NodeId]:
        """The nodes whose name or place matches, in the order in which they would stand.

        Args:
            query: Text, in any case; or a regular expression between slashes.

        Raises:
            ValueError: The expression is malformed.
        """
        pattern = _pattern(query)
        labels, frames = self._view.labels, self._tree.frames
        is_match = [
            any(pattern.search(text) for text in labels.spellings(FrameId(frame))) for frame in range(len(frames))
        ]
        found: list[NodeId] = []
        pending = [ROOT]
        while pending:
            node = pending.pop()
            if is_match[self._tree.frame[node]]:
                found.append(node)
            pending.extend(reversed(self.children(node)))
        return found

    @cached_property
    def _is_shown(self) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """Nodes with a value of any column, or with such nodes below."""
        shown = np.zeros(len(self._tree), np.int64)
        for column in self._view.columns:
            shown |= np.nan_to_num(column.values) != 0
        return self._tree.sum_up(shown) > 0


def _pattern(query: str) -> re.Pattern[str]:
    is_expression = len(query) > 2 and query.startswith("/") and query.endswith("/")
    try:
        return re.compile(query[1:-1] if is_expression else re.escape(query), re.IGNORECASE)
    except re.error as error:
        raise ValueError(f"{query} is not an expression: {error}") from error
