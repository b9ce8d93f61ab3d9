"""Functions that a call path repeats: those that call themselves, and those around a scope."""

from __future__ import annotations

import numpy as np

from bragg.model import CallTree, FrameKind, FrameTable
from bragg.model.regroup import Regrouping, regroup
from bragg.model.table import BoolArray, Int64Array


def without_repeated_calls(tree: CallTree) -> Regrouping | None:
    """A Python function that calls itself as one node, and below a scope not again the function that the scope is in.

    The function around a scope is recorded on both sides: at the line that opened the scope, and at that of each call.

    Returns:
        Where the nodes go; None: no function is repeated.
    """
    function = _functions(tree.frames)[tree.frame]
    repeated: BoolArray = (function >= 0) & (function == function[tree.parent])
    repeated[0] = False
    repeated[_around_scopes(tree, function)] = True
    return regroup(tree, folded=repeated) if repeated.any() else None


def _functions(frames: FrameTable) -> Int64Array:
    """The same number for all lines of a Python function, -1 for other frames: [n_frames]."""
    first = dict[tuple[str, str], int]()
    rows = zip(frames.kind.tolist(), frames.name, frames.file, strict=True)
    return np.array(
        [
            first.setdefault((name, file), len(first)) if kind == FrameKind.PYTHON and file else -1
            for kind, name, file in rows
        ],
        np.int64,
    )


def _around_scopes(tree: CallTree, function: Int64Array) -> Int64Array:
    """First functions below scopes that are above these too, themselves or callers of helpers that opened them."""
    is_scope: BoolArray = tree.kind == FrameKind.SCOPE
    node = np.flatnonzero((function >= 0) & is_scope[tree.parent])
    above = tree.parent[node]
    while (nested := is_scope[above]).any():
        above = np.where(nested, tree.parent[above], above)
    found = [np.zeros(0, np.int64)]
    while len(node):
        same = function[above] == function[node]
        found.append(node[same])
        further = ~same & (function[above] >= 0)
        node, above = node[further], tree.parent[above[further]]
    return np.concatenate(found)
