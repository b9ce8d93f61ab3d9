"""Call paths of timelines that do not tell them.

On a thread, an event was called by the one that encloses it. GPU work was called by whatever launched it, which
correlation ids tell, and is a child of the operator or function around the launch.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from bragg.formats.limits import next_depth
from bragg.model import CallTree, FrameKind, FrameTable, SliceTable, TrackKind, TrackTable
from bragg.model.table import BoolArray, Int32Array, Int64Array

# Writers round start and length to a microsecond, each on its own.
_ROUNDING_NS = 1000
_BLOCK_ROWS = 1 << 16
_NOT_RECORDED = "<launch not recorded>"


class Frames:
    """Frames by what they stand for, each once; frame 0 is the root."""

    def __init__(self) -> None:
        self._rows: dict[tuple[int, str, str, int, int], int] = {(FrameKind.ROOT, "root", "", 0, -1): 0}

    def __len__(self) -> int:
        return len(self._rows)

    def id(self, kind: FrameKind, name: str, file: str = "", line: int = 0, device: int = -1) -> int:
        """The row of a frame."""
        return self._rows.setdefault((kind, name, file, line, device), len(self._rows))

    def table(self) -> FrameTable:
        """The frames so far."""
        kind, name, file, line, device = (list(column) for column in zip(*self._rows, strict=True))
        return FrameTable(np.array(kind, np.uint8), name, file, np.array(line, np.int32), np.array(device, np.int32))


class Nodes:
    """A call tree that grows; node 0 is the root."""

    def __init__(self) -> None:
        self._node_of: dict[tuple[int, int], int] = {}
        self.parent = [-1]
        self.frame = [0]
        self._depth = [0]

    def child(self, parent: int, frame: int) -> int:
        """The node with this frame below `parent`, a new one where there was none.

        Raises:
            ValueError: It would be too deep.
        """
        key = parent, frame
        node = self._node_of.get(key)
        if node is None:
            self._depth.append(next_depth(self._depth[parent]))
            node = self._node_of[key] = len(self.parent)
            self.parent.append(parent)
            self.frame.append(frame)
        return node

    def children(self, above: Int32Array, frame: Int32Array) -> Int32Array:
        """The node of each frame below each node: int32 [n]."""
        pairs, place = np.unique(np.stack([above, frame], axis=1), axis=0, return_inverse=True)
        found = np.array([self.child(*pair) for pair in pairs.tolist()], np.int32)
        return found[place.reshape(-1)]

    def tree(self, frames: FrameTable) -> CallTree:
        """The tree so far."""
        return CallTree(np.array(self.parent, np.int32), np.array(self.frame, np.int32), frames)


def call_tree(
    frames: Frames,
    nodes: Nodes,
    tracks: TrackTable,
    events: SliceTable,
    placed: Int32Array | None = None,
    operator: Int64Array | None = None,
) -> tuple[CallTree, Int32Array]:
    """The tree of what ran, and the node of each event: [n_events].

    Args:
        frames: What the events stand for.
        nodes: The tree so far.
        tracks: Where they ran.
        events: What ran when; column `node` is a row of `frames`.
        placed: The node of each event whose call path is known, -1 for the others: [n_events]; None: none is known.
        operator: An id that GPU work shares with the operator that caused it, 0 for none: [n_events]; used where no
            launch has its correlation id.
    """
    n_events = len(events)
    node = np.full(n_events, -1, np.int32) if placed is None else placed.astype(np.int32)
    kind = tracks.kind[events.track]
    on_host = kind == TrackKind.HOST_THREAD
    rows = np.flatnonzero(on_host & (node < 0))
    order = rows[np.lexsort((-events.duration_ns[rows], events.start_ns[rows], events.track[rows]))]
    node[order] = np.fromiter(_nested(nodes, events, order), np.int32, len(order))
    on_gpu = np.flatnonzero((kind == TrackKind.GPU_STREAM) & (node < 0))
    above = _launching(frames, nodes, events, node, on_host, on_gpu, operator)
    node[on_gpu] = nodes.children(above, events.node[on_gpu])
    rest = np.flatnonzero(node < 0)
    node[rest] = nodes.children(np.zeros(len(rest), np.int32), events.node[rest])
    return nodes.tree(frames.table()), node


def _nested(nodes: Nodes, events: SliceTable, order: Int64Array) -> Iterator[int]:
    """The nodes of events on threads, which are ordered by track, start and falling duration."""
    ends: list[int] = []
    open_nodes: list[int] = []
    current = -1
    for begin in range(0, len(order), _BLOCK_ROWS):
        block = events.take(order[begin : begin + _BLOCK_ROWS])
        columns = (block.track, block.start_ns, block.duration_ns, block.node)
        for track, start, duration, frame in zip(*(column.tolist() for column in columns), strict=True):
            if track != current:
                current, ends, open_nodes = track, [], []
            end = start + duration
            while ends and (ends[-1] <= start or end > ends[-1] + _ROUNDING_NS):
                ends.pop()
                open_nodes.pop()
            node = nodes.child(open_nodes[-1] if open_nodes else 0, frame)
            ends.append(end)
            open_nodes.append(node)
            yield node


def _launching(
    frames: Frames,
    nodes: Nodes,
    events: SliceTable,
    node: Int32Array,
    on_host: BoolArray,
    on_gpu: Int64Array,
    operator: Int64Array | None,
) -> Int32Array:
    """The node that each piece of GPU work is a child of."""
    parent, frame = np.array(nodes.parent, np.int32), np.array(nodes.frame, np.int32)
    is_call = frames.table().kind[frame] == FrameKind.GPU_API
    around = np.where(is_call, parent, np.arange(len(parent))).astype(np.int32)
    found = _same_id(events.correlation, on_host, on_gpu)
    if operator is not None:
        found = np.where(found < 0, _same_id(operator, on_host, on_gpu), found)
    above = np.where(found < 0, -1, around[node[found]]).astype(np.int32)
    if (above < 0).any():
        above[above < 0] = nodes.child(0, frames.id(FrameKind.STATE, _NOT_RECORDED))
    return above


def _same_id(ids: Int64Array, on_host: BoolArray, on_gpu: Int64Array) -> Int64Array:
    """For each row on a GPU the host's first row with its id, -1 where there is none."""
    hosts = np.flatnonzero(on_host & (ids != 0))
    hosts = hosts[np.argsort(ids[hosts], kind="stable")]
    if not len(hosts):
        return np.full(len(on_gpu), -1, np.int64)
    wanted = ids[on_gpu]
    place = np.minimum(np.searchsorted(ids[hosts], wanted), len(hosts) - 1)
    return np.where((ids[hosts[place]] == wanted) & (wanted != 0), hosts[place], -1)
