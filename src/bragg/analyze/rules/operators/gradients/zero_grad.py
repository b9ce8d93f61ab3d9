"""Gradients that are filled with zeros instead of dropped."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.causes.host_finding import counted
from bragg.analyze.causes.needs import GPU_TIME
from bragg.analyze.causes.paths import ZEROES, below, children, named
from bragg.analyze.causes.thresholds import MUCH_GPU, WAITS
from bragg.analyze.causes.whole_gain import whole_gain
from bragg.analyze.causes.work_finding import Work, work_findings
from bragg.analyze.engine import HostTime, Rule
from bragg.model import Confidence, Finding, Quantity

_WORK = Work(
    "zero-grad",
    "zero_grad fills gradients with zeros",
    "zero_grad(set_to_none=True), the default since PyTorch 2.0",
    1.0,
    Confidence.PROVEN,
    with_host=True,
    least_share=0.0,
    is_launched=True,
)


def _find(evidence: Evidence) -> Iterator[Finding]:
    profile = evidence.profile
    fills = below(profile, named(profile, ZEROES.match))
    if float(evidence.gpu_count[fills].sum()) >= WAITS.value * evidence.steps:
        for finding in work_findings(evidence, fills, _WORK):
            yield _with_additions(evidence, finding)


def _with_additions(evidence: Evidence, finding: Finding) -> Finding:
    """Where a gradient is None, the backward pass keeps the new one instead of adding it: once for each step."""
    adds = below(evidence.profile, children(evidence.profile, "torch::autograd::AccumulateGrad", "aten::add_"))
    saved = _share_of_first_passes(evidence)
    count, more = float(evidence.gpu_count[adds].sum()) * saved, whole_gain(evidence, adds, saved)
    if not count or more is None or finding.gain is None:
        return finding
    return replace(
        finding,
        message=f"{finding.message}; the backward pass adds to them: {counted(evidence, count, 'launch', 'launches')}",
        evidence=(*finding.evidence, Quantity(f"additions {evidence.step_word}", evidence.per_step(count))),
        gain=evidence.gain(finding.gain.wall_ns + more.wall_ns, finding.gain.limit and more.limit),
    )


def _share_of_first_passes(evidence: Evidence) -> float:
    """Backward passes that are the first ones after zero_grad, of all, 0 to 1: fewer where gradients accumulate."""
    profile = evidence.profile
    steps = float(evidence.calls[named(profile, lambda name: name.startswith("Optimizer.step#"))].sum())
    # The gradient of a loss, which each pass begins with.
    passes = float(evidence.calls[children(profile, "_make_grads", "aten::ones_like")].sum())
    return min(steps / passes, 1.0) if passes else 0.0


RULE = Rule(
    _find,
    "gradients that are filled with zeros",
    (GPU_TIME,),
    (MUCH_GPU, WAITS),
    _WORK.change,
    host_time=HostTime.CAUSE,
)
