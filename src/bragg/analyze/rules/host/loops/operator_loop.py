"""Loops of Python that call the same operators for one tensor after the other, while a GPU waits."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.causes.host_finding import Cause
from bragg.analyze.causes.needs import IDLE, OPERATORS
from bragg.analyze.causes.paths import MODULE_CALLS, below, in_files, named
from bragg.analyze.causes.row_loops import loops_over_rows
from bragg.analyze.causes.statements import statement_finding
from bragg.analyze.causes.thresholds import MANY_CALLED, OF_WALL, RECURRING, WAITS
from bragg.analyze.engine import HostTime, Rule
from bragg.model import Confidence, Finding, FrameKind, Quantity
from bragg.model.finding import percent_text
from bragg.model.table import FloatArray

_CHANGE = (
    "one call for all of them: torch._foreach_* for a list of tensors, torch.stack, index_add_ or torch.vmap for a "
    "batch; or torch.compile around the loop"
)


def _find(evidence: Evidence) -> Iterator[Finding]:
    if evidence.idle_ns is None or not evidence.wall_ns:
        return
    turns = np.where(loops_over_rows(evidence), 0.0, _turns(evidence))
    looped = below(evidence.profile, turns > 0) & evidence.host.launching
    waits_ns = np.where(looped, evidence.idle_ns, 0.0)
    share = float(waits_ns.sum()) / evidence.wall_ns
    if share < OF_WALL.value:
        return
    # Of several loops, that of most launches.
    most = float(turns[np.argmax(np.where(turns > 0, evidence.calls, 0.0))])
    n_calls = float(evidence.calls[turns > 0].sum())
    cause = Cause(
        "operator-loop",
        f"a loop calls the same operators {most:,.0f} times, for one tensor after the other: the GPU waits for these "
        f"launches, {percent_text(share)} of the time",
        _CHANGE,
        evidence.gain(float(waits_ns.sum()) * (1 - 1 / most)),
        Confidence.HEURISTIC,
        (Quantity("turns", most), Quantity(f"calls {evidence.step_word}", evidence.per_step(n_calls))),
    )
    yield statement_finding(evidence, looped, evidence.idle_ns, cause)


def _turns(evidence: Evidence) -> FloatArray:
    """How often a loop calls each operator, [n_nodes]; 0: it is in none.

    Compared are operators that one function calls. Where all of them run as often, a loop calls the function: in
    each step, unless modules do, which are layers of a network.
    """
    profile, callers, calls = evidence.profile, evidence.callers, evidence.calls
    called = (callers.line > 0) & (profile.tree.kind == FrameKind.OPERATOR) & evidence.host.launching
    called &= ~below(profile, named(profile, lambda name: name.startswith("Optimizer.")))
    of_layers = below(profile, in_files(profile, MODULE_CALLS))
    works = called & callers.is_direct & evidence.has_work
    least, turns = WAITS.value * evidence.n_steps or RECURRING.value, np.zeros(len(calls))
    for inside in callers.by_function(called):
        recurs = inside[calls[inside] >= least]
        if not len(recurs):
            continue
        once = _once(evidence, float(calls[recurs].min()), bool(of_layers[callers.line[recurs[0]]]))
        looped = recurs[works[recurs] & (calls[recurs] >= MANY_CALLED.value * once)]
        turns[looped] = calls[looped].min(initial=np.inf) / once
    return turns


def _once(evidence: Evidence, fewest: float, is_in_layer: bool) -> float:
    """How often a function is called, if the operator that it calls least runs so often."""
    return fewest if is_in_layer or not evidence.n_steps else min(fewest, float(evidence.n_steps))


RULE = Rule(
    _find,
    "loops that call the same operators for one tensor after the other",
    (IDLE, OPERATORS),
    (MANY_CALLED, OF_WALL, RECURRING, WAITS),
    _CHANGE,
    host_time=HostTime.LOOP,
)
