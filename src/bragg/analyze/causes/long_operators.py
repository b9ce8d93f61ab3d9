"""Operators of PyTorch that keep a GPU waiting at each call, by name."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.causes.host_finding import lasting
from bragg.model import Gain, Quantity
from bragg.model.kernels.names import operator_name
from bragg.model.table import BoolArray, FloatArray

# What is left is the launch, some 50 us of milliseconds.
_SAVED = 0.95
# Of the calls, of which the mean then tells enough.
_MOST = 0.7
# So many long calls: fewer load a library, or are the first of a kernel.
_RECURS = 4


@dataclass(frozen=True, eq=False)
class LongOperator:
    """All calls of one operator.

    Attributes:
        name: Without shapes.
        nodes: Where it is called: [n_nodes].
        idle_ns: How long a GPU waited for each node: [n_nodes].
        text: `1.24 ms at each of 3 calls`; of calls of which few are long `63.8 ms at 68 of 503 calls`.
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
    """Those of some nodes, [n_nodes], for which a GPU waits so long a call at least, and not for the first alone."""
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
        if each_ns < least_ns:
            continue
        n_long = _long_calls(evidence, outer)
        if n_long is None or n_long >= min(_RECURS, calls):
            text = _text(float(idle_ns[chosen].sum()), calls, n_long)
            told = (Quantity("calls", calls), Quantity("wait for each call", each_ns, "ns"))
            yield LongOperator(name, chosen, idle_ns, text, told, evidence.host_gain(chosen, _SAVED))


def _long_calls(evidence: Evidence, nodes: BoolArray) -> int | None:
    """How many calls take more than half of the mean; None: their times are not known."""
    if not evidence.has_timeline:
        return None
    durations = evidence.host_calls.duration_ns[nodes[evidence.host_calls.node]]
    return int((durations > durations.mean() / 2).sum()) if len(durations) else None


def _text(idle_ns: float, calls: float, n_long: int | None) -> str:
    if n_long is None:
        return f"{lasting(idle_ns / calls)} a call on average, at {calls:,.0f} calls"
    which = f"each of {calls:,.0f}" if n_long >= _MOST * calls else f"{n_long:,} of {calls:,.0f}"
    return f"{lasting(idle_ns / min(n_long, calls))} at {which} calls"
