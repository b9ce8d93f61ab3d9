"""Activations that the backward pass computes once more, to save memory."""

from __future__ import annotations

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
    "recomputed-activations",
    "checkpoints compute activations a second time in the backward pass, to save memory",
    "if GPU memory is left (bragg run --memory shows the peak): no torch.utils.checkpoint (JAX: jax.checkpoint), "
    "or for fewer layers",
    1.0,
    Confidence.HEURISTIC,
    with_host=True,
    is_launched=True,
)


def _find(evidence: Evidence) -> Iterator[Finding]:
    profile = evidence.profile
    yield from work_findings(evidence, below(profile, named(profile, "[recompute]".__eq__)), _WORK)


RULE = Rule(
    _find, "activations that are computed twice", (GPU_TIME,), (MUCH_GPU,), _WORK.change, host_time=HostTime.CAUSE
)
