"""Which slice of a thread is around others, and which is the innermost one from moment to moment."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

import numpy as np

from bragg.model.table import Int64Array

_NEVER = np.iinfo(np.int64).max
# Threads have 20 to 60; files that are made to be slow may have any depth, and each level costs a look at all slices.
_MAX_DEPTH = 200


def innermost_changes(start_ns: Int64Array, end_ns: Int64Array, node: Int64Array) -> tuple[Int64Array, Int64Array]:
    """When the innermost slice changes, from before all times on, and its node from then on; -1: none.

    Args:
        start_ns: int64 [n_slices], ascending; at one start the longest first.
        end_ns: int64 [n_slices].
        node: int64 [n_slices].

    Returns:
        int64 [n_changes], ascending, and int64 [n_changes].
    """
    lasts = end_ns > start_ns
    start_ns, end_ns, node = start_ns[lasts], end_ns[lasts], node[lasts]
    parent = _nested_parents(start_ns, end_ns)
    if parent is None:
        changes = _walked(zip(start_ns.tolist(), end_ns.tolist(), node.tolist(), strict=True))
        return np.array(list(changes), np.int64), np.array(list(changes.values()), np.int64)
    around = np.where(parent >= 0, node[np.maximum(parent, 0)], -1)
    # At one moment the outermost end counts, and after it the innermost start.
    moments = np.concatenate([[-_NEVER], end_ns[::-1], start_ns])
    nodes = np.concatenate([[-1], around[::-1], node])
    order = np.argsort(moments, kind="stable")
    moments, nodes = moments[order], nodes[order]
    is_last = np.append(moments[1:] != moments[:-1], True)
    return moments[is_last], nodes[is_last]


def _nested_parents(start_ns: Int64Array, end_ns: Int64Array) -> Int64Array | None:
    """As `parents_of`; None: slices overlap without nesting, or are nested very deep."""
    is_inside = (depth := _depths(start_ns, end_ns)) > 0
    if depth.max(initial=0) > _MAX_DEPTH:
        return None
    parent = parents_of(start_ns, end_ns)
    around = parent[is_inside]
    return parent if ((around >= 0) & (end_ns[around] >= end_ns[is_inside])).all() else None


def parents_of(start_ns: Int64Array, end_ns: Int64Array) -> Int64Array:
    """Row of the innermost slice around each one of a thread; -1: none.

    Args:
        start_ns: int64 [n_slices], ascending; at one start the longest first.
        end_ns: int64 [n_slices].

    Returns:
        int64 [n_slices].
    """
    depth = _depths(start_ns, end_ns)
    parent = np.full(len(start_ns), -1, np.int64)
    above = np.flatnonzero(depth == 0)
    for level in range(1, int(depth.max(initial=0)) + 1):
        rows = np.flatnonzero(depth == level)
        if len(above):
            found = above[np.maximum(np.searchsorted(above, rows) - 1, 0)]
            parent[rows] = np.where(found < rows, found, -1)
        above = rows
    return parent


def _depths(start_ns: Int64Array, end_ns: Int64Array) -> Int64Array:
    """How many slices are around each one: those that began before it and have not ended."""
    return np.arange(len(start_ns)) - np.searchsorted(np.sort(end_ns), start_ns, side="right")


def _walked(slices: Iterator[tuple[int, int, int]]) -> dict[int, int]:
    """Moment of each change to the node from then on, from before all times; of several at one moment the last holds.

    Args:
        slices: Start, end and node, by start, at one start the longest first.
    """
    node_from = {-_NEVER: -1}
    open_until: list[tuple[int, int]] = []
    for start, end, node in chain(slices, [(_NEVER, _NEVER, -1)]):
        while open_until and open_until[-1][0] <= start:
            moment, _ = open_until.pop()
            while open_until and open_until[-1][0] <= moment:  # hidden by one that began later
                open_until.pop()
            node_from[moment] = open_until[-1][1] if open_until else -1
        open_until.append((end, node))
        node_from[start] = node
    del node_from[_NEVER]  # which closed those that were open
    return node_from
