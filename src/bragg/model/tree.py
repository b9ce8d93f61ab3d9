"""The calling context tree: what was running, along its whole call path."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from bragg.model.ids import FrameId, NodeId
from bragg.model.table import FloatArray, Int32Array, Int64Array, Table, UInt8Array

_Number = TypeVar("_Number", np.int64, np.float64)


class FrameKind(IntEnum):
    """What a frame stands for; the numbers of the capture format."""

    ROOT = 0
    SCOPE = 1
    STATE = 2
    PYTHON = 3
    NATIVE = 4
    OPERATOR = 5
    GPU_API = 6
    KERNEL = 7
    LINE = 8
    MARKER = 9
    MEMORY = 10


_CODE_KINDS = (FrameKind.PYTHON, FrameKind.NATIVE, FrameKind.LINE)


@dataclass(frozen=True, eq=False)
class FrameTable(Table):
    """Things that can stand in a call path, each once.

    Attributes:
        kind: A `FrameKind`.
        name: Function, scope, operator or kernel name, as the program gave it.
        file: Source file; empty when unknown.
        line: Line of `file`, from 1; 0 when unknown.
        device: Device ordinal of a kernel or copy; -1 for everything else.
    """

    kind: UInt8Array
    name: list[str]
    file: list[str]
    line: Int32Array
    device: Int32Array

    @classmethod
    def of_names(cls, kind: FrameKind, names: Sequence[str]) -> FrameTable:
        """Frames of one kind that have a name alone."""
        n = len(names)
        no_line, no_device = np.zeros(n, np.int32), np.full(n, -1, np.int32)
        return cls(np.full(n, kind, np.uint8), list(names), [""] * n, no_line, no_device)

    def label(self, frame: FrameId) -> str:
        """How a frame is shown: code as `file:line@function`, everything else by name."""
        if self.kind[frame] in _CODE_KINDS and self.file[frame]:
            return f"{self.file[frame]}:{self.line[frame]}@{self.name[frame]}"
        return self.name[frame]

    def labels(self) -> list[str]:
        """The label of each frame."""
        return [self.label(FrameId(frame)) for frame in range(len(self))]


@dataclass(frozen=True, eq=False)
class CallTree:
    """Nodes in an order in which parents precede children; node 0 is the only root.

    Attributes:
        parent: int32 [n_nodes]; -1 for the root.
        frame: int32 [n_nodes], row of `frames`.
        frames: What the nodes stand for.
    """

    parent: Int32Array
    frame: Int32Array
    frames: FrameTable

    def __post_init__(self) -> None:
        object.__setattr__(self, "parent", np.ascontiguousarray(self.parent, np.int32))
        object.__setattr__(self, "frame", np.ascontiguousarray(self.frame, np.int32))

    def __len__(self) -> int:
        return len(self.parent)

    def check(self) -> None:
        """Check the laws of the tree.

        Raises:
            ValueError: A law is broken; the message names it.
        """
        _require(len(self) > 0, "a tree has a root")
        _require(len(self.parent) == len(self.frame), "every node has a parent and a frame")
        _require(self.parent[0] == -1, "node 0 is the root")
        inner = self.parent[1:]
        _require(bool((inner >= 0).all()), "there is one root")
        _require(bool((inner < np.arange(1, len(self))).all()), "parents precede children")
        _require(bool(((self.frame >= 0) & (self.frame < len(self.frames))).all()), "every node's frame exists")

    @cached_property
    def kind(self) -> UInt8Array:
        """`FrameKind` of each node: uint8 [n_nodes]."""
        return self.frames.kind[self.frame]

    @cached_property
    def depth(self) -> Int32Array:
        """Edges between the root and each node: int32 [n_nodes]."""
        # Pointer doubling: after k rounds `ancestor` is 2^k levels up, so the rounds grow with log(depth).
        ancestor = np.maximum(self.parent, 0)
        depth = (self.parent >= 0).astype(np.int32)
        while ancestor.any():
            depth += depth[ancestor]
            ancestor = ancestor[ancestor]
        return depth

    @cached_property
    def levels(self) -> list[Int64Array]:
        """The nodes of each depth, ascending within a depth: a list by depth of [n_nodes of that depth]."""
        order = np.argsort(self.depth, kind="stable")
        return np.split(order, np.cumsum(np.bincount(self.depth))[:-1])

    def sum_up(self, own: NDArray[_Number]) -> NDArray[_Number]:
        """Sum of each node's own value and those of all its descendants: [n_nodes], int64 or float64."""
        total: NDArray[_Number] = own.copy()
        for level in reversed(self.levels[1:]):
            np.add.at(total, self.parent[level], total[level])
        return total

    def largest_below(self, own: FloatArray) -> FloatArray:
        """The largest of each node's own value and those of all its descendants, NaN where there is none: [n_nodes]."""
        largest: FloatArray = own.copy()
        for level in reversed(self.levels[1:]):
            np.fmax.at(largest, self.parent[level], largest[level])
        return largest

    def children(self, node: NodeId) -> Int64Array:
        """The children of a node, ascending: [n_children]."""
        order, first = self._child_index
        return order[first[node] : first[node + 1]]

    def path(self, node: NodeId) -> list[NodeId]:
        """The nodes from the root to `node`, both included."""
        path = [node]
        while (above := int(self.parent[path[-1]])) >= 0:
            path.append(NodeId(above))
        return path[::-1]

    def label(self, node: NodeId) -> str:
        """How a node is shown, see `FrameTable.label`."""
        return self.frames.label(self.frame_of(node))

    def frame_of(self, node: NodeId) -> FrameId:
        """What stands at a node."""
        return FrameId(int(self.frame[node]))

    @cached_property
    def _child_index(self) -> tuple[Int64Array, Int64Array]:
        """Nodes ordered by parent, and where each parent's children begin in that order [n_nodes + 1]."""
        order = np.argsort(self.parent, kind="stable")[1:]
        counts = np.bincount(self.parent[1:], minlength=len(self))
        return order, np.concatenate([[0], np.cumsum(counts)])


def _require(law_holds: Any, law: str) -> None:
    if not law_holds:
        raise ValueError(f"broken call tree: {law}")
