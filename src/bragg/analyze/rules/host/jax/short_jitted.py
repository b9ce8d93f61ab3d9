"""Jitted functions of JAX whose work is so short that a GPU waits for the dispatch of each call."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.causes.host_finding import Cause, moved
from bragg.analyze.causes.needs import GPU_TIME, IDLE
from bragg.analyze.causes.paths import below, named, place_of
from bragg.analyze.causes.statements import statement_finding
from bragg.analyze.causes.thresholds import HOST_BOUND, IDLE_GPU, MANY_CALLS, SHORT_CALL
from bragg.analyze.engine import HostTime, Rule
from bragg.analyze.rules.host.jax.eager import called_often
from bragg.grouping.hlo_names import CALLS
from bragg.model import Confidence, Finding, Place, Quantity, Severity
from bragg.model.table import BoolArray

_SAVED = 0.8
_OFTEN = 1.8  # times as often: counts of sums are estimates
_CHANGE = (
    "several steps in one call: jax.lax.scan or fori_loop around the step; jax.vmap for calls that do not need each "
    "other; larger batches"
)


def _find(evidence: Evidence) -> Iterator[Finding]:
    profile, idle_ns = evidence.profile, evidence.idle_ns
    jitted = named(profile, lambda name: name.startswith(CALLS))
    calls = float(evidence.calls[jitted].sum())
    if idle_ns is None or not evidence.wall_ns or calls < MANY_CALLS.value or (evidence.busy or 1.0) > IDLE_GPU.value:
        return
    if called_often(evidence):  # that they are many is the cause, and has a rule of its own
        return
    inside = below(profile, jitted)
    nodes = inside & evidence.host.launching
    waits_ns, works_ns = float((idle_ns - evidence.code_wait_ns)[nodes].sum()), float(evidence.gpu_ns[inside].sum())
    if waits_ns < HOST_BOUND.value * evidence.wall_ns or works_ns > SHORT_CALL.value * calls:
        return
    cause = Cause(
        "short-jitted-calls",
        f"{calls:,.0f} calls of jitted functions work {works_ns / calls / 1e3:.1f} us each: the GPU waits "
        f"{waits_ns / calls / 1e3:.1f} us for the dispatch of each",
        _CHANGE,
        evidence.gain(waits_ns * _SAVED),
        Confidence.HEURISTIC,
        (
            Quantity("calls", calls),
            Quantity("work of each", works_ns / calls, "ns"),
            Quantity("wait for each", waits_ns / calls, "ns"),
        ),
        Severity.NOTE,
    )
    finding = statement_finding(evidence, nodes, idle_ns, cause)
    often = _called_most(evidence, jitted)
    yield moved(finding, often) if often else finding


def _called_most(evidence: Evidence, jitted: BoolArray) -> Place | None:
    """The line that calls jitted functions at least twice as often as any other, as a loop in a step does."""
    lines: dict[tuple[str, int], float] = {}
    for node in np.flatnonzero(jitted & (evidence.calls > 0)).tolist():
        place = place_of(evidence.profile, node)
        lines[place.file, place.line] = lines.get((place.file, place.line), 0.0) + float(evidence.calls[node])
    most, *others = sorted(lines, key=lambda line: -lines[line])
    if not others or not most[0] or lines[most] < _OFTEN * lines[others[0]]:
        return None
    return Place(*most)


RULE = Rule(
    _find,
    "jitted functions of JAX that are called often and work little",
    (GPU_TIME, IDLE),
    (HOST_BOUND, IDLE_GPU, MANY_CALLS, SHORT_CALL),
    _CHANGE,
    host_time=HostTime.WHOLE,
)
