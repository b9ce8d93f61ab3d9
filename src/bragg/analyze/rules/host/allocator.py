"""Memory of the GPU that is allocated and freed in each step."""

from __future__ import annotations

from collections.abc import Iterator

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.causes.host_finding import Cause, counted, host_finding
from bragg.analyze.causes.needs import API_CALLS
from bragg.analyze.causes.paths import named
from bragg.analyze.causes.thresholds import WAITS
from bragg.analyze.engine import HostTime, Rule
from bragg.model import Confidence, Finding, FrameKind, Gain, Quantity

# Launches after it take longer, too, because memory is mapped anew: measured 2.4 times the calls' own waits on an H100.
_SAVED = 2.0
CHANGE = "no torch.cuda.empty_cache() in the step; PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True"


def _find(evidence: Evidence) -> Iterator[Finding]:
    profile = evidence.profile
    nodes = evidence.host.allocation & (profile.tree.kind == FrameKind.GPU_API)
    count = float(evidence.calls[nodes].sum())
    if count < max(WAITS.value * evidence.n_steps, 10):
        return
    idle_ns = evidence.idle_ns
    weight = evidence.calls if idle_ns is None else idle_ns
    # What is freed in each step is allocated again in the next one: the line that frees is to blame.
    frees = nodes & named(profile, lambda name: "Free" in name)
    often = float(evidence.calls[frees].sum()) >= WAITS.value * evidence.steps
    cause = Cause(
        "allocator-churn",
        f"{counted(evidence, count, 'call')} allocate or free memory of the GPU: each waits for the GPU",
        CHANGE,
        evidence=(Quantity(f"calls {evidence.step_word}", evidence.per_step(count)),),
        gain=emptying_gain(evidence, float(idle_ns[nodes].sum())) if idle_ns is not None else None,
        confidence=Confidence.PROVEN,
    )
    yield host_finding(evidence, frees if often else nodes, weight, cause)


def emptying_gain(evidence: Evidence, took_ns: float) -> Gain | None:
    """What it gains not to free and allocate.

    Args:
        evidence: Of a profile.
        took_ns: How long a GPU waited for the calls themselves.
    """
    if evidence.idle_ns is None or not evidence.wall_ns:
        return None
    return evidence.gain(min(took_ns * _SAVED, float(evidence.idle_ns.sum())))


RULE = Rule(
    _find,
    "memory that is allocated and freed in each step",
    (API_CALLS,),
    (WAITS,),
    "no empty_cache in the step; expandable segments",
    host_time=HostTime.CAUSE,
)
