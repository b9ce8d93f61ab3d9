"""Operators of PyTorch that keep a GPU waiting at each call, by name."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from bragg.analyze.causes.evidence import Evidence
from bragg.model import Gain, Quantity
from bragg.model.kernels.names import operator_name
from bragg.model.table import BoolArray, FloatArray

__all__ = ["LongOperator", "long_operators"]

# What is left is the launch, some 50 us of milliseconds.
_SAVED = 0.95


@dataclass(frozen=True, eq=False)
class LongOperator:
    """All calls of one operator.

    Attributes:
        name: Without shapes.
        nodes: Where it is called: [n_nodes].
        idle_ns: How long a GPU waited for each node: [n_nodes].
        text: `1.2 ms at each of 3 calls`.
        evidence: The same in numbers.
        gain: What it saves not to wait for it.
    """

    name: str
    nodes: BoolArray
    idle_ns: FloatArray
    text: str
    evidence: tuple[Quantity, ...]
    gain: Gain | None


def long_operators(evidence: Evidence, nodes: BoolArray, least_ns: float) -> Iterator[LongOperator]:
    """Those of some nodes, [n_nodes], for which a GPU waits at least so long at each call."""
    tree, idle_ns = evidence.profile.tree, evidence.idle_ns
    if idle_ns is None:
        return
    names = np.array([operator_name(name) for name in tree.frames.name])[tree.frame]
    for name in np.unique(names[nodes]).tolist():
        chosen = nodes & (names == name)
        # An overload that calls another one has the same name.
        outer = chosen & ~(chosen[np.maximum(tree.parent, 0)] & (names[np.maximum(tree.parent, 0)] == name))
        calls = float(evidence.calls[outer].sum())
        each_ns = float(idle_ns[chosen].sum()) / max(calls, 1.0)
        if each_ns >= least_ns:
            text = f"{each_ns / 1e6:.2g} ms at each of {calls:,.0f} calls"
            told = (Quantity("calls", calls), Quantity("wait for each call", each_ns, "ns"))
            yield LongOperator(name, chosen, idle_ns, text, told, evidence.host_gain(chosen, _SAVED))
