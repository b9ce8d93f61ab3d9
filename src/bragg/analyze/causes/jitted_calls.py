"""What a call of a jitted function of JAX launches, and what of it is in loops of XLA."""

from __future__ import annotations

import numpy as np

from bragg.analyze.causes.facts import Facts
from bragg.analyze.causes.paths import below, named
from bragg.grouping.hlo_names import CALLS
from bragg.model import FrameKind
from bragg.model.table import BoolArray, FloatArray

__all__ = ["in_loops", "launches_of_call"]


def in_loops(facts: Facts) -> BoolArray:
    """Nodes in loops of XLA, as scan, map and fori_loop make them: [n_nodes]."""
    return below(facts.profile, named(facts.profile, "while".__eq__))


def launches_of_call(facts: Facts) -> FloatArray:
    """How often each kernel or copy runs in a call of its jitted function, [n_nodes]; 0 for all else."""
    profile, tree = facts.profile, facts.profile.tree
    launches: FloatArray = np.zeros(len(tree))
    is_work = np.isin(tree.kind, (FrameKind.KERNEL, FrameKind.MEMORY)) & ~facts.compiling  # which tries kernels
    for call in np.flatnonzero(named(profile, lambda name: name.startswith(CALLS)) & (facts.calls > 0)).tolist():
        inside = below(profile, np.arange(len(tree)) == call) & is_work
        launches[inside] = facts.gpu_count[inside] / facts.calls[call]
    return launches
