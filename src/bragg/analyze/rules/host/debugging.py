"""Settings for debugging, with which each call is looked at, compiled by nothing, or waited for."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.causes.host_finding import Cause, host_finding, moved_to
from bragg.analyze.causes.needs import IDLE
from bragg.analyze.causes.text.text_calls import lines_of
from bragg.analyze.causes.thresholds import IDLE_GPU
from bragg.analyze.engine import HostTime, Rule
from bragg.model import Confidence, Finding


@dataclass(frozen=True)
class _Setting:
    """A setting for debugging.

    Attributes:
        text: That finds the line which sets it.
        of_jax: Whether it is one of JAX; else it is one of CUDA.
        what: What it does.
        change: What to remove.
        saved: Share of the waits for the host that goes away.
    """

    text: re.Pattern[str]
    of_jax: bool
    what: str
    change: str
    saved: float


_OF_JAX = r"debug_nans|debug_infs|disable_jit|enable_checks"
_SETTINGS = (
    _Setting(
        re.compile(rf"\bjax_(?:{_OF_JAX})\b.*True|\bJAX_(?:{_OF_JAX.upper()})\b|\b(?:{_OF_JAX})\(\)"),
        True,
        "JAX is set to debug: it looks at the result of each call, or compiles nothing, and the GPU waits for the host",
        "remove jax_debug_nans, jax_disable_jit and the like: they are for debugging",
        0.8,
    ),
    _Setting(
        re.compile(r"\bCUDA_LAUNCH_BLOCKING\b\W+[1-9]"),
        False,
        "the host waits for each kernel before it launches the next (CUDA_LAUNCH_BLOCKING), the GPU for the host",
        "remove CUDA_LAUNCH_BLOCKING: it is for debugging",
        0.5,
    ),
)


def _find(evidence: Evidence) -> Iterator[Finding]:
    idle_ns = evidence.idle_ns
    if idle_ns is None or not idle_ns.any() or (evidence.busy or 1.0) > IDLE_GPU.value:
        return
    for setting in _SETTINGS:
        lines = lines_of(evidence, setting.text) if evidence.is_jitted == setting.of_jax else []
        if lines:
            gain = evidence.gain(float(idle_ns.sum()) * setting.saved)
            cause = Cause("debug-settings", setting.what, setting.change, gain, Confidence.HEURISTIC)
            yield moved_to(host_finding(evidence, idle_ns > 0, idle_ns, cause), lines)


RULE = Rule(
    _find,
    "settings for debugging",
    (IDLE,),
    (IDLE_GPU,),
    "remove jax_debug_nans, jax_disable_jit, CUDA_LAUNCH_BLOCKING and the like",
    host_time=HostTime.CAUSE,
)
