"""Backward passes that go over the same forward pass several times."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.causes.host_finding import Cause, host_finding
from bragg.analyze.causes.needs import GPU_TIME, OPERATORS
from bragg.analyze.causes.paths import AUTOGRAD, below, children, in_files, named
from bragg.analyze.causes.thresholds import MANY_PASSES, MUCH_GPU
from bragg.analyze.causes.whole_gain import whole_gain
from bragg.analyze.causes.work_finding import SHARE_OF_GPU
from bragg.analyze.engine import HostTime, Rule
from bragg.model import Confidence, Finding, Quantity

_CHANGE = (
    "add the losses up and call backward() once; for a Jacobian torch.func.jacrev, or grad(..., is_grads_batched=True)"
)


def _find(evidence: Evidence) -> Iterator[Finding]:
    profile = evidence.profile
    again = named(profile, "[backward]".__eq__)
    gradients = children(profile, "[backward]", "torch::autograd::AccumulateGrad")  # of parameters: no operator's own
    made = float(evidence.calls[profile.tree.parent[again]].sum())
    ran = float(evidence.calls[again].sum() - evidence.calls[gradients].sum())
    if not made or ran < MANY_PASSES.value * made:
        return
    backward = below(profile, again)
    if float(evidence.gpu_ns[backward].sum()) < MUCH_GPU.value * float(evidence.gpu_ns.sum()):
        return
    cause = Cause(
        "repeated-backward",
        f"the backward pass runs {ran / made:.2g} times over each forward pass: {made:,.0f} calls of operators, and "
        f"{ran:,.0f} of their gradients",
        _CHANGE,
        whole_gain(evidence, backward, 1 - made / ran),
        Confidence.LIKELY,
        (
            Quantity("calls of operators", made),
            Quantity("calls of their gradients", ran),
            Quantity(SHARE_OF_GPU, float(evidence.gpu_ns[backward].sum() / evidence.gpu_ns.sum()), "share"),
        ),
    )
    calls = below(profile, in_files(profile, AUTOGRAD) & ~named(profile, "<module>".__eq__))  # which is imported
    seen = np.where(calls, evidence.sampled_ns, 0.0)
    yield host_finding(evidence, calls if seen.any() else backward, seen if seen.any() else evidence.gpu_ns, cause)


RULE = Rule(
    _find,
    "backward passes over the same forward pass",
    (GPU_TIME, OPERATORS),
    (MANY_PASSES, MUCH_GPU),
    _CHANGE,
    host_time=HostTime.CAUSE,
)
