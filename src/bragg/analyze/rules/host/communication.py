"""Communication that nothing else runs beside."""

from __future__ import annotations

import re
from collections.abc import Iterator

from bragg.analyze.causes.alone import alone_ns
from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.causes.host_finding import Cause, host_finding
from bragg.analyze.causes.needs import GPU_TIME
from bragg.analyze.causes.paths import named
from bragg.analyze.causes.thresholds import EXPOSED
from bragg.analyze.engine import Rule
from bragg.model import Confidence, Finding, Quantity
from bragg.model.finding import percent_text

_NCCL = re.compile(r"nccl", re.I)
_SAVED = 0.7


def _find(evidence: Evidence) -> Iterator[Finding]:
    if not evidence.wall_ns:
        return
    exposed = alone_ns(evidence, named(evidence.profile, _NCCL.search))
    total_ns = float(exposed.sum()) / evidence.bounding.count
    if total_ns < EXPOSED.value * evidence.wall_ns or not total_ns:
        return
    least = "" if evidence.has_timeline else "at least "
    cause = Cause(
        "exposed-communication",
        f"{least}{percent_text(total_ns / evidence.wall_ns)} of the wall time is communication while nothing else runs",
        "larger buckets, gradients that are sent while others are computed, no find_unused_parameters",
        evidence=(Quantity(f"alone {evidence.step_word}", evidence.per_step(total_ns), "ns"),),
        gain=evidence.gain(total_ns * _SAVED),
        confidence=Confidence.LIKELY,
    )
    yield host_finding(evidence, exposed > 0, exposed, cause)


RULE = Rule(
    _find, "communication that nothing runs beside", (GPU_TIME,), (EXPOSED,), "send gradients while others are computed"
)
