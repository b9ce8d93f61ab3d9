"""Jitted functions of JAX that compute what another one, which also computes gradients, has computed already."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.causes.host_finding import moved
from bragg.analyze.causes.needs import GPU_TIME
from bragg.analyze.causes.paths import below, named, operation_line, place_of
from bragg.analyze.causes.text.text_calls import statements_above
from bragg.analyze.causes.thresholds import MUCH_GPU, WAITS
from bragg.analyze.causes.work_finding import Work, work_findings
from bragg.analyze.engine import HostTime, Rule
from bragg.code.python_nodes import walk
from bragg.grouping.hlo_names import BACKWARD, CALLS
from bragg.model import Confidence, Finding
from bragg.model.ids import NodeId
from bragg.model.table import BoolArray

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
_GRADIENTS = replace(
    _WORK,
    what="jitted functions compute the forward pass of the same arguments again, one gradient after the other",
    change="one jitted function for all of them: jax.value_and_grad(f, argnums=(0, 1)), which returns the value, too",
)
_NEARLY_ALL, _AS_LONG, _AS_OFTEN = 0.8, 2.0, 0.1
_NOT_MORE = 1.1  # times as long: XLA fuses each program in its own way
_SHORT_NS = 15_000  # kernels of other sizes take as long, too


@dataclass(frozen=True)
class _Call:
    """Calls of a jitted function from one place.

    Attributes:
        node: Of the call.
        count: How many.
        lines: GPU time of its forward pass by file and line.
        backward: That of its backward pass.
        is_long: Whether its kernels take longer than a launch.
    """

    node: int
    count: float
    lines: dict[tuple[str, int], float]
    backward: dict[tuple[str, int], float]
    is_long: bool

    @property
    def has_gradients(self) -> bool:
        """Whether it has a backward pass."""
        return bool(self.backward)

    def repeats(self, other: _Call) -> bool:
        """Whether it computes what the other one does."""
        total_ns = sum(self.lines.values())
        shared = self.lines.keys() & other.lines.keys()
        own_ns, other_ns = (sum(each.lines[line] for line in shared) for each in (self, other))
        is_as_often = abs(self.count - other.count) <= _AS_OFTEN * other.count
        is_as_long = 0 < own_ns <= _AS_LONG * other_ns and other_ns <= _AS_LONG * own_ns
        return is_as_often and is_as_long and own_ns >= _NEARLY_ALL * total_ns


def _find(evidence: Evidence) -> Iterator[Finding]:
    # Where both have one name, each of their calls counts as a step.
    calls = [call for call in _calls(evidence) if 2 * call.count >= WAITS.value * evidence.steps]
    again = {call.node: first for call, first in _values(calls)}
    gradients = {call.node: first for call, first in _same_gradients(evidence, calls)}
    repeated = np.isin(np.arange(len(evidence.profile.tree)), list(again))
    nodes = below(evidence.profile, repeated)
    for node, first in gradients.items():
        nodes |= _shared(evidence, node, first)
    nodes_of_calls = sorted({*again, *gradients})
    for finding in work_findings(evidence, nodes, _GRADIENTS if gradients else _WORK):
        line = place_of(evidence.profile, NodeId(nodes_of_calls[0]))
        firsts = [
            *(NodeId(node) for node in nodes_of_calls[1:]),
            *(first.node for first in (again | gradients).values()),
        ]
        yield replace(moved(finding, line, [place_of(evidence.profile, NodeId(first)) for first in firsts]), kernel="")


def _values(calls: list[_Call]) -> Iterator[tuple[_Call, _Call]]:
    """Calls without gradients, with one that has them and computes the same before."""
    for call in calls:
        first = next((each for each in calls if each.has_gradients and call.repeats(each)), None)
        if first and not call.has_gradients and call.is_long:
            yield call, first


def _same_gradients(evidence: Evidence, calls: list[_Call]) -> Iterator[tuple[_Call, _Call]]:
    """Calls with gradients of the same arguments, by the text, each with another one that computes more of both."""
    kept: list[_Call] = []
    for call in (each for each in calls if each.has_gradients and each.is_long):
        other = next((each for each in kept if call.repeats(each) and _get_the_same(evidence, call, each)), None)
        if other is None:
            kept.append(call)
            continue
        pairs = ((call, other), (other, call))
        less, more = max(pairs, key=lambda pair: float(evidence.gpu_ns[_shared(evidence, pair[0].node, pair[1])].sum()))
        kept[kept.index(other)] = more
        yield less, more


def _shared(evidence: Evidence, node: int, other: _Call) -> BoolArray:
    """Work of a call that another one does, too, [n_nodes]: its forward pass, and gradients that are part of others."""
    inside, backward = _parts(evidence, node)
    found: BoolArray = inside & ~backward
    times = _by_line(evidence, inside & backward)
    is_part = {line for line, time_ns in times.items() if time_ns <= _NOT_MORE * other.backward.get(line, 0.0)}
    for each in np.flatnonzero(inside & backward).tolist():
        found[each] = operation_line(evidence.profile, each) in is_part
    return found


def _get_the_same(evidence: Evidence, call: _Call, other: _Call) -> bool:
    """Whether two statements in a row call with the same arguments, which nothing sets in between."""
    told = [next(statements_above(evidence, each.node), None) for each in (call, other)]
    if told[0] is None or told[1] is None or told[0][1] is not told[1][1]:
        return False
    file, *both = told[0][1], *sorted((told[0][2], told[1][2]), key=lambda each: each.lineno)
    body = getattr(file.parents.get(both[0]), "body", [])
    if both[0] is both[1] or not all(each in body for each in both):
        return False
    given = [{ast.unparse(each).partition("(")[2] for each in walk(one) if _is_call(each)} for one in both]
    between = body[body.index(both[0]) : body.index(both[1])]
    changed = {
        ast.unparse(part)
        for each in between
        for part in walk(each)
        if isinstance(getattr(part, "ctx", None), ast.Store)
    }
    return any(not any(_has(text, each) for each in changed) for text in given[0] & given[1])


def _is_call(part: ast.AST) -> bool:
    return isinstance(part, ast.Call) and len(part.args) + len(part.keywords) > 1


def _has(text: str, name: str) -> bool:
    return re.search(rf"(?<![\w.]){re.escape(name)}(?!\w)", text) is not None


def _calls(evidence: Evidence) -> Iterator[_Call]:
    profile = evidence.profile
    is_call = named(profile, lambda name: name.startswith(CALLS)) & (evidence.calls > 0)
    for node in np.flatnonzero(is_call).tolist():
        works, backward = _parts(evidence, node)
        lines, launches = _by_line(evidence, works & ~backward), float(evidence.gpu_count[works & ~backward].sum())
        is_long = sum(lines.values()) >= _SHORT_NS * max(launches, 1)
        yield _Call(node, float(evidence.calls[node]), lines, _by_line(evidence, works & backward), is_long)


def _parts(evidence: Evidence, node: int) -> tuple[BoolArray, BoolArray]:
    """Work of a call, and of all backward passes: [n_nodes]."""
    profile = evidence.profile
    inside = below(profile, np.arange(len(profile.tree)) == node)
    return inside & (evidence.gpu_ns > 0) & ~evidence.compiling, below(profile, named(profile, BACKWARD[1].__eq__))


def _by_line(evidence: Evidence, works: BoolArray) -> dict[tuple[str, int], float]:
    lines: dict[tuple[str, int], float] = {}
    for each in np.flatnonzero(works).tolist():
        line = operation_line(evidence.profile, each)
        lines[line] = lines.get(line, 0.0) + float(evidence.gpu_ns[each])
    return lines


RULE = Rule(
    _find,
    "jitted functions of JAX that compute a forward pass a second time",
    (GPU_TIME,),
    (MUCH_GPU, WAITS),
    _WORK.change,
    host_time=HostTime.CAUSE,
)
