"""Jitted functions of JAX whose work is so short that a GPU waits for the dispatch of each call."""

from __future__ import annotations

from collections.abc import Iterator

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.causes.host_finding import Cause
from bragg.analyze.causes.needs import GPU_TIME, IDLE
from bragg.analyze.causes.paths import below, named
from bragg.analyze.causes.statements import statement_finding
from bragg.analyze.causes.thresholds import HOST_BOUND, IDLE_GPU, MANY_CALLS, SHORT_CALL
from bragg.analyze.engine import HostTime, Rule
from bragg.analyze.rules.host.eager_jax import called_often
from bragg.grouping.hlo_names import CALLS
from bragg.model import Confidence, Finding, Quantity, Severity

__all__ = ["RULE"]

_SAVED = 0.8
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
    yield statement_finding(evidence, nodes, idle_ns, cause)


RULE = Rule(
    _find,
    "jitted functions of JAX that are called often and work little",
    (GPU_TIME, IDLE),
    (HOST_BOUND, IDLE_GPU, MANY_CALLS, SHORT_CALL),
    _CHANGE,
    host_time=HostTime.WHOLE,
)
