"""Operators that take long on the host before each launch: they plan, tune or compile at each call."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.causes.needs import IDLE, OPERATORS
from bragg.analyze.causes.paths import hottest_place
from bragg.analyze.causes.thresholds import PLAN_CALL, PLAN_SHARE
from bragg.analyze.engine import Rule, Subject
from bragg.model import Confidence, Finding, Quantity, Severity
from bragg.model.kernel_name import operator_name

__all__ = ["RULE"]

# What is left is the launch, some 50 us of milliseconds.
_SAVED = 0.95
_CUDNN_ATTENTION = (
    "torch.backends.cuda.enable_cudnn_sdp(False) (PyTorch's flash attention needs no plan), "
    "or keep shapes the same: pad, or use a static cache"
)
_CHANGES = {
    "aten::_cudnn_attention_forward": _CUDNN_ATTENTION,
    "aten::_scaled_dot_product_cudnn_attention": _CUDNN_ATTENTION,
    "aten::_cudnn_attention_backward": _CUDNN_ATTENTION,
    "aten::cudnn_convolution": "keep shapes the same, or set torch.backends.cudnn.benchmark = False",
}
_OTHER = "keep shapes the same from call to call: pad or bucket them; else look for what it compiles or plans"


def _find(evidence: Evidence) -> Iterator[Finding]:
    tree, idle_ns = evidence.profile.tree, evidence.idle_ns
    if idle_ns is None:
        return
    names = [operator_name(name) for name in tree.frames.name]
    nodes = np.flatnonzero(evidence.host.planning)
    for name in sorted({names[frame] for frame in tree.frame[nodes].tolist()}):
        chosen = evidence.host.planning & np.array([each == name for each in names], np.bool_)[tree.frame]
        calls, waited_ns = float(evidence.calls[chosen].sum()), float(idle_ns[chosen].sum())
        place = hottest_place(evidence.profile, chosen, idle_ns)
        yield Finding(
            "planning",
            Severity.WARNING,
            f"{name} takes {waited_ns / max(calls, 1) / 1e6:.1f} ms of the host at each of {calls:,.0f} calls, "
            "and the GPU waits: it plans or compiles anew",
            _CHANGES.get(name, _OTHER),
            node=place.node,
            file=place.file,
            line=place.line,
            evidence=(Quantity("calls", calls), Quantity("wait for each call", waited_ns / max(calls, 1), "ns")),
            gain=evidence.host_gain(chosen, _SAVED),
            confidence=Confidence.LIKELY if name in _CHANGES else Confidence.HEURISTIC,
        )


RULE = Rule(
    _find,
    Subject.ANALYSIS,
    "operators that plan, tune or compile at each call",
    (OPERATORS, IDLE),
    (PLAN_CALL, PLAN_SHARE),
    "keep shapes the same, or choose an implementation that needs no plan",
)
