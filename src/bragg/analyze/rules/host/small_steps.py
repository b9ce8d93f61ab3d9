"""Programs whose steps launch little, and give a GPU too little work for the time that the host takes."""

from __future__ import annotations

from collections.abc import Iterator

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.causes.host_finding import Cause, counted
from bragg.analyze.causes.needs import GPU_TIME, LAUNCH_COUNT
from bragg.analyze.causes.statements import statement_finding
from bragg.analyze.causes.thresholds import FEW_LAUNCHES, HOST_BOUND, MANY_LAUNCHES
from bragg.analyze.engine import HostTime, Rule
from bragg.model import Confidence, Finding, Quantity, Severity
from bragg.model.finding import percent_text

# Of twice the batch the host's part is half for each sample.
_SAVED = 0.5
_CHANGE = "a larger batch, which costs the host no more; or several steps in one graph"


def _find(evidence: Evidence) -> Iterator[Finding]:
    idle_ns, busy, n_launches = evidence.idle_ns, evidence.busy, evidence.n_launches
    if idle_ns is None or busy is None or n_launches is None or not evidence.wall_ns or evidence.is_jitted:
        return
    most = MANY_LAUNCHES.value * evidence.n_steps if evidence.n_steps else FEW_LAUNCHES.value
    nodes = evidence.host.launching
    waits_ns = float((idle_ns - evidence.code_wait_ns)[nodes].sum())
    share = waits_ns / evidence.wall_ns
    if n_launches >= most or share < HOST_BOUND.value:
        return
    beside = " beside CUDA graphs" if evidence.has_graphs else ""
    cause = Cause(
        "small-steps",
        f"the GPU works {percent_text(busy)} of the time and waits {percent_text(share)} for Python and operators, "
        f"which launch few kernels: {counted(evidence, n_launches)}{beside}",
        _CHANGE,
        evidence=(
            Quantity("busy", busy, "share"),
            Quantity("waits for the host", share, "share"),
            Quantity(f"launches {evidence.step_word}", evidence.per_step(n_launches)),
        ),
        gain=evidence.gain(waits_ns * _SAVED),
        confidence=Confidence.HEURISTIC,
        severity=Severity.NOTE,
    )
    yield statement_finding(evidence, nodes, idle_ns, cause)


RULE = Rule(
    _find,
    "steps with few launches and little work for the GPU",
    (GPU_TIME, LAUNCH_COUNT),
    (HOST_BOUND, MANY_LAUNCHES, FEW_LAUNCHES),
    _CHANGE,
    host_time=HostTime.WHOLE,
)
