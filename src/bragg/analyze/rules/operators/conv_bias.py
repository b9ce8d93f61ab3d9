"""Biases of convolutions that a batch norm subtracts again."""

from __future__ import annotations

from collections.abc import Iterator

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.causes.needs import GPU_TIME, OPERATORS
from bragg.analyze.causes.paths import below, children, named
from bragg.analyze.causes.thresholds import MUCH_GPU
from bragg.analyze.causes.work_finding import Work, work_findings
from bragg.analyze.engine import Rule
from bragg.model import Confidence, Finding

_WORK = Work(
    "bias-before-norm",
    "biases of convolutions, which the batch norm behind them subtracts again",
    "Conv2d(..., bias=False) before BatchNorm2d, which has a bias of its own",
    1.0,
    Confidence.LIKELY,
    is_launched=True,
)
# PyTorch adds the bias with an operator of its own, and sums its gradient up beside the others (2.4 to 2.11).
_ADDS, _SUMS = ("aten::_convolution", "aten::add_"), ("aten::convolution_backward", "aten::sum")


def _find(evidence: Evidence) -> Iterator[Finding]:
    profile = evidence.profile
    adds = children(profile, *_ADDS)
    norms = named(profile, "aten::batch_norm".__eq__)
    # As many norms as biases: a network has few convolutions without a norm where it has norms at all.
    if evidence.calls[norms].sum() >= evidence.calls[adds].sum() > 0:
        yield from work_findings(evidence, below(profile, adds | children(profile, *_SUMS)), _WORK)


RULE = Rule(_find, "convolutions with a bias before a batch norm", (GPU_TIME, OPERATORS), (MUCH_GPU,), _WORK.change)
