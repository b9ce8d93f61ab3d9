"""Host time of a call tree from what was measured and what was sampled."""

from __future__ import annotations

import numpy as np

from bragg.model.table import BoolArray, Int64Array
from bragg.model.tree import CallTree, FrameKind

__all__ = ["own_host_time"]

# Kernels: those that the host executes itself, where there is no GPU.
_MEASURED_KINDS = (FrameKind.SCOPE, FrameKind.OPERATOR, FrameKind.GPU_API, FrameKind.KERNEL)


def own_host_time(
    tree: CallTree, measured_ns: Int64Array, is_measured: BoolArray, sampled_ns: Int64Array
) -> Int64Array:
    """Own host time of each node, so that a node's time is its own plus its children's.

    A measured node has at least its measured time. A sample at a line that calls an operator is the operator's time, so
    elsewhere only samples beyond the measured children count. A measured state stands below what it belongs to, like
    the backward pass of an operator, but did not run inside it.

    Args:
        tree: The call tree.
        measured_ns: [n_nodes], including what ran inside.
        is_measured: [n_nodes].
        sampled_ns: [n_nodes], of the node alone.
    """
    own = np.zeros(len(tree), np.int64)
    inside = np.zeros(len(tree), np.int64)
    measured_inside = np.zeros(len(tree), np.int64)
    is_measured_kind = np.isin(tree.kind, _MEASURED_KINDS)
    runs_inside_parent = ~(is_measured & (tree.kind == FrameKind.STATE))
    for level in reversed(tree.levels):
        beyond = np.where(
            is_measured[level], measured_ns[level] - inside[level], sampled_ns[level] - measured_inside[level]
        )
        own[level] = np.maximum(beyond, 0)
        inner = level[(level != 0) & runs_inside_parent[level]]
        total = own[inner] + inside[inner]
        np.add.at(inside, tree.parent[inner], total)
        np.add.at(measured_inside, tree.parent[inner], np.where(is_measured_kind[inner], total, 0))
    return own
