"""Settings of JAX for debugging, with which each call is looked at, or compiled by nothing."""

from __future__ import annotations

import re
from collections.abc import Iterator

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.causes.host_finding import Cause, host_finding, moved
from bragg.analyze.causes.needs import IDLE
from bragg.analyze.causes.text_calls import lines_of
from bragg.analyze.causes.thresholds import IDLE_GPU
from bragg.analyze.engine import HostTime, Rule
from bragg.model import Confidence, Finding

__all__ = ["RULE"]

_SETTINGS = r"debug_nans|debug_infs|disable_jit|enable_checks"
_ENABLES = re.compile(rf"\bjax_(?:{_SETTINGS})\b.*True|\bJAX_(?:{_SETTINGS.upper()})\b|\b(?:{_SETTINGS})\(\)")
_SAVED = 0.8
_CHANGE = "remove jax_debug_nans, jax_disable_jit and the like: they are for debugging"


def _find(evidence: Evidence) -> Iterator[Finding]:
    idle_ns = evidence.idle_ns
    lines = lines_of(evidence, _ENABLES) if evidence.is_jitted and idle_ns is not None else []
    if not lines or idle_ns is None or not idle_ns.any() or (evidence.busy or 1.0) > IDLE_GPU.value:
        return
    cause = Cause(
        "debug-settings",
        "JAX is set to debug: it looks at the result of each call, or compiles nothing, and the GPU waits for the host",
        _CHANGE,
        evidence.gain(float(idle_ns.sum()) * _SAVED),
        Confidence.HEURISTIC,
    )
    yield moved(host_finding(evidence, idle_ns > 0, idle_ns, cause), lines[0], lines[1:])


RULE = Rule(_find, "settings of JAX for debugging", (IDLE,), (IDLE_GPU,), _CHANGE, host_time=HostTime.CAUSE)
