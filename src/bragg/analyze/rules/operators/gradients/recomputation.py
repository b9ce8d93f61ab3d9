"""Activations that the backward pass computes once more, to save memory."""

from __future__ import annotations

from collections.abc import Iterator

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.causes.host_steps import GPU_TIME_OR_STEPS, HostCost, host_costs, host_steps
from bragg.analyze.causes.paths import below, named
from bragg.analyze.causes.thresholds import MUCH_GPU, OF_STEP
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
_WITHOUT_GPU = HostCost(
    _WORK.rule, _WORK.what, "if memory is left: no torch.utils.checkpoint, or for fewer layers", saved=1.0
)


def _find(evidence: Evidence) -> Iterator[Finding]:
    profile = evidence.profile
    again = below(profile, named(profile, "[recompute]".__eq__))
    if host_steps(evidence) is not None:
        yield from host_costs(evidence, again, _WITHOUT_GPU)
    else:
        yield from work_findings(evidence, again, _WORK)


RULE = Rule(
    _find,
    "activations that are computed twice",
    (GPU_TIME_OR_STEPS,),
    (MUCH_GPU, OF_STEP),
    _WORK.change,
    host_time=HostTime.CAUSE,
)
