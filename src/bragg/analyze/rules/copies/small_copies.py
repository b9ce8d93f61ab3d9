"""Many small copies between the host and a GPU."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.causes.host_finding import Cause, counted, host_finding
from bragg.analyze.causes.needs import GPU_COUNT, IDLE
from bragg.analyze.causes.paths import named
from bragg.analyze.causes.thresholds import OFTEN, SMALL_COPY
from bragg.analyze.causes.whole_gain import whole_gain
from bragg.analyze.engine import HostTime, Rule
from bragg.model import Confidence, Finding, Quantity

_SAVED = 0.9


def _find(evidence: Evidence) -> Iterator[Finding]:
    profile = evidence.profile
    copies = named(profile, lambda name: name == "copy HtoD")
    if "gpu_bytes" not in profile.metrics:  # nothing was copied
        return
    mean_bytes = profile.own("gpu_bytes") / np.maximum(profile.own("gpu_count"), 1)
    small = copies & (mean_bytes < SMALL_COPY.value) & (evidence.gpu_count > 0)
    count = float(evidence.gpu_count[small].sum())
    if count < OFTEN.value * evidence.steps:
        return
    # The call that copies is made by the node above.
    nodes = small.copy()
    nodes[profile.tree.parent[np.flatnonzero(small)]] = True
    cause = Cause(
        "small-copies",
        f"{counted(evidence, count, 'copy', 'copies')} from the host, each below "
        f"{SMALL_COPY.value / 1024:.0f} kB: the calls cost more than the bytes",
        "put what is copied into one tensor, or make it on the GPU",
        evidence=(Quantity(f"copies {evidence.step_word}", evidence.per_step(count)),),
        gain=whole_gain(evidence, nodes, _SAVED),
        confidence=Confidence.LIKELY,
    )
    yield host_finding(evidence, small, evidence.gpu_count, cause)


RULE = Rule(
    _find,
    "many small copies from the host",
    (IDLE, GPU_COUNT),
    (OFTEN, SMALL_COPY),
    "one copy of one tensor",
    host_time=HostTime.CAUSE,
)
