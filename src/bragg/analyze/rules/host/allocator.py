"""Memory of the GPU that is allocated and freed in each step."""

from __future__ import annotations

from collections.abc import Iterator

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.causes.host_finding import Cause, host_finding
from bragg.analyze.causes.needs import API_CALLS
from bragg.analyze.causes.paths import named
from bragg.analyze.causes.thresholds import WAITS
from bragg.analyze.engine import HostTime, Rule, Subject
from bragg.model import Confidence, Finding, FrameKind, Quantity

__all__ = ["RULE"]

_SAVED = 0.95


def _find(evidence: Evidence) -> Iterator[Finding]:
    profile = evidence.profile
    nodes = evidence.host.allocation & (profile.tree.kind == FrameKind.GPU_API)
    count = float(evidence.calls[nodes].sum())
    if count < max(WAITS.value * evidence.n_steps, 10):
        return
    weight = evidence.calls if evidence.idle_ns is None else evidence.idle_ns
    # What is freed in each step is allocated again in the next one: the line that frees is to blame.
    frees = nodes & named(profile, lambda name: "Free" in name)
    often = float(evidence.calls[frees].sum()) >= WAITS.value * evidence.steps
    cause = Cause(
        "allocator-churn",
        f"{evidence.per_step(count):,.3g} calls {evidence.step_word} allocate or free memory of the GPU: "
        "each waits for the GPU",
        "no torch.cuda.empty_cache() in the step; PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True",
        evidence=(Quantity(f"calls {evidence.step_word}", evidence.per_step(count)),),
        gain=evidence.host_gain(nodes, _SAVED),
        confidence=Confidence.PROVEN,
    )
    yield host_finding(evidence, frees if often else nodes, weight, cause)


RULE = Rule(
    _find,
    Subject.ANALYSIS,
    "memory that is allocated and freed in each step",
    (API_CALLS,),
    (WAITS,),
    "no empty_cache in the step; expandable segments",
    host_time=HostTime.CAUSE,
)
