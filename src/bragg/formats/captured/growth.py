"""Nodes that are added to a tree that was read."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from bragg.model import CallTree, Combine, FrameKind, FrameTable, Metric


@dataclass
class Growth:
    """Nodes and frames that are being added to a tree.

    Attributes:
        first_node: Id of the first new node.
        first_frame: Row of the first new frame.
    """

    first_node: int
    first_frame: int
    parent: list[int] = field(default_factory=list)
    frame: list[int] = field(default_factory=list)
    frames: dict[tuple[FrameKind, str, str, int], int] = field(default_factory=dict)
    _children: dict[tuple[int, int], int] = field(default_factory=dict)

    def child(self, parent: int, name: str, file: str = "", line: int = 0, kind: FrameKind = FrameKind.LINE) -> int:
        """The node of a line, an instruction or another frame below a node."""
        frame = self.frames.setdefault((kind, name, file, line), self.first_frame + len(self.frames))
        node = self._children.setdefault((parent, frame), self.first_node + len(self.parent))
        if node == self.first_node + len(self.parent):
            self.parent.append(parent)
            self.frame.append(frame)
        return node

    @property
    def n_nodes(self) -> int:
        """Nodes of the tree with what was added."""
        return self.first_node + len(self.parent)

    def applied_to(self, tree: CallTree) -> CallTree:
        """The tree with what was added."""
        kinds, names, files, lines = zip(*self.frames, strict=True)
        old, n_new = tree.frames, len(self.frames)
        frames = FrameTable(
            kind=np.append(old.kind, np.array(kinds, np.uint8)),
            name=[*old.name, *names],
            file=[*old.file, *files],
            line=np.append(old.line, np.array(lines, np.int32)),
            device=np.append(old.device, np.full(n_new, -1, np.int32)),
        )
        return CallTree(np.append(tree.parent, self.parent), np.append(tree.frame, self.frame), frames)


def padded(metric: Metric, n_nodes: int) -> Metric:
    """A metric over more nodes, which have none of it."""
    n_new = n_nodes - len(metric.own)
    nothing = 0 if metric.combine is Combine.SUM else np.nan
    own = np.append(metric.own, np.full(n_new, nothing, metric.own.dtype))
    counted = metric.counted
    return metric.with_own(own, None if counted is None else np.append(counted, np.zeros(n_new, np.bool_)))
