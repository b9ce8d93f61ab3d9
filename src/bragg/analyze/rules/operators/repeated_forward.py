"""Jitted functions of JAX that compute what another one, which also computes gradients, has computed already."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.causes.host_finding import moved
from bragg.analyze.causes.needs import GPU_TIME
from bragg.analyze.causes.paths import OPERATIONS, below, named, place_of
from bragg.analyze.causes.thresholds import MUCH_GPU, WAITS
from bragg.analyze.causes.work_finding import Work, work_findings
from bragg.analyze.engine import HostTime, Rule
from bragg.grouping.hlo_names import BACKWARD, CALLS
from bragg.model import Confidence, Finding
from bragg.model.ids import NodeId
from bragg.model.table import BoolArray

__all__ = ["RULE"]

_WORK = Work(
    "repeated-forward",
    "a jitted function computes the same lines as the forward pass of one that computes gradients",
    "if both get the same arguments: jax.value_and_grad in one jitted function, which returns the value, too "
    "(has_aux=True for more)",
    1.0,
    Confidence.HEURISTIC,
    with_host=True,
    is_launched=True,
)
_NEARLY_ALL, _AS_LONG, _AS_OFTEN = 0.8, 2.0, 0.1
_SHORT_NS = 15_000  # kernels of other sizes take as long, too


@dataclass(frozen=True)
class _Call:
    """Calls of a jitted function from one place.

    Attributes:
        node: Of the call.
        count: How many.
        lines: GPU time of its forward pass by file and line.
        is_long: Whether its kernels take longer than a launch.
        has_gradients: Whether it has a backward pass.
    """

    node: int
    count: float
    lines: dict[tuple[str, int], float]
    is_long: bool
    has_gradients: bool

    def repeats(self, other: _Call) -> bool:
        """Whether it computes what the other one does."""
        total_ns = sum(self.lines.values())
        shared = self.lines.keys() & other.lines.keys()
        own_ns, other_ns = (sum(each.lines[line] for line in shared) for each in (self, other))
        is_as_often = abs(self.count - other.count) <= _AS_OFTEN * other.count
        is_as_long = 0 < own_ns <= _AS_LONG * other_ns and other_ns <= _AS_LONG * own_ns
        return is_as_often and is_as_long and own_ns >= _NEARLY_ALL * total_ns


def _find(evidence: Evidence) -> Iterator[Finding]:
    tree = evidence.profile.tree
    # Where both have one name, each of their calls counts as a step.
    calls = [call for call in _calls(evidence) if 2 * call.count >= WAITS.value * evidence.steps]
    repeated = np.zeros(len(tree), np.bool_)
    firsts = []
    for call in calls:
        first = next((each for each in calls if each.has_gradients and call.repeats(each)), None)
        if first and not call.has_gradients and call.is_long:
            repeated[call.node] = True
            firsts.append(first.node)
    for finding in work_findings(evidence, below(evidence.profile, repeated), _WORK):
        line = place_of(evidence.profile, NodeId(int(np.flatnonzero(repeated)[0])))
        others = [place_of(evidence.profile, NodeId(first)) for first in firsts]
        yield replace(moved(finding, line, others), kernel="")


def _calls(evidence: Evidence) -> Iterator[_Call]:
    profile, tree = evidence.profile, evidence.profile.tree
    is_call = named(profile, lambda name: name.startswith(CALLS)) & (evidence.calls > 0)
    backward = below(profile, named(profile, BACKWARD[1].__eq__))
    for node in np.flatnonzero(is_call).tolist():
        works: BoolArray = below(profile, np.arange(len(tree)) == node) & (evidence.gpu_ns > 0) & ~evidence.compiling
        forward = works & ~backward
        lines: dict[tuple[str, int], float] = {}
        for each in np.flatnonzero(forward).tolist():
            place = place_of(profile, each, OPERATIONS)
            lines[place.file, place.line] = lines.get((place.file, place.line), 0.0) + float(evidence.gpu_ns[each])
        launches = float(evidence.gpu_count[forward].sum())
        is_long = sum(lines.values()) >= _SHORT_NS * max(launches, 1)
        yield _Call(node, float(evidence.calls[node]), lines, is_long, bool((works & backward).any()))


RULE = Rule(
    _find,
    "jitted functions of JAX that compute a forward pass a second time",
    (GPU_TIME,),
    (MUCH_GPU, WAITS),
    _WORK.change,
    host_time=HostTime.CAUSE,
)
