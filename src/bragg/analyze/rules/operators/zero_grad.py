"""Gradients that are filled with zeros instead of dropped."""

from __future__ import annotations

import re
from collections.abc import Iterator

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.causes.needs import GPU_TIME
from bragg.analyze.causes.paths import below, named
from bragg.analyze.causes.thresholds import MUCH_GPU
from bragg.analyze.causes.work_finding import Work, work_findings
from bragg.analyze.engine import HostTime, Rule
from bragg.model import Confidence, Finding

__all__ = ["RULE"]

_WORK = Work(
    "zero-grad",
    "zero_grad fills gradients with zeros",
    "zero_grad(set_to_none=True), the default since PyTorch 2.0",
    1.0,
    Confidence.PROVEN,
    with_host=True,
    least_share=0.0,
)
# Of an optimizer, which PyTorch announces, and of a module.
_ZEROES = re.compile(r"Optimizer\.zero_grad#|Module\.zero_grad$")


def _find(evidence: Evidence) -> Iterator[Finding]:
    profile = evidence.profile
    nodes = below(profile, named(profile, _ZEROES.match))
    if float(evidence.gpu_count[nodes].sum()) >= evidence.steps:
        yield from work_findings(evidence, nodes, _WORK)


RULE = Rule(
    _find, "gradients that are filled with zeros", (GPU_TIME,), (MUCH_GPU,), _WORK.change, host_time=HostTime.CAUSE
)
