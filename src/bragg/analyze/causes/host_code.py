"""Waits of a GPU for code of the host that launches nothing: Python and what it calls, between two launches."""

from __future__ import annotations

import numpy as np

from bragg.analyze.causes.thresholds import LONG_CODE
from bragg.model import CallTree, FrameKind
from bragg.model.table import FloatArray

_MEASURED = (FrameKind.OPERATOR, FrameKind.GPU_API)


def code_wait_ns(
    tree: CallTree, idle_ns: FloatArray, host_ns: FloatArray, pauses: FloatArray, longest_ns: FloatArray
) -> FloatArray:
    """How long a GPU waited for code that launches nothing, at the node which launched next or is around it: [n_nodes].

    The wait for an operator or a call is longer than it takes: the rest of it passed before. A scope's own time is what
    samples did not see: calls of JAX that dispatch.

    Args:
        tree: Of the profile.
        idle_ns: How long a GPU waited for each node: [n_nodes].
        host_ns: Own time of the host in each node, without a first call that took long: [n_nodes].
        pauses: How often a GPU waited for each node: [n_nodes].
        longest_ns: The longest single wait: [n_nodes].
    """
    inside_ns = np.where(np.isin(tree.kind, _MEASURED), tree.sum_up(host_ns), 0.0)
    inside_ns = np.where(tree.kind == FrameKind.SCOPE, host_ns, inside_ns)
    before_ns: FloatArray = np.maximum(idle_ns - inside_ns, 0.0)
    is_long = before_ns >= LONG_CODE.value * np.maximum(pauses, 1.0)
    return np.where(is_long & (longest_ns >= LONG_CODE.value), before_ns, 0.0)
