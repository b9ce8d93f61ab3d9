"""Operators that take long on the host before each launch: they plan, tune or compile at each call."""

from __future__ import annotations

import re
from collections.abc import Iterator

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.causes.host_finding import Cause, host_finding, moved_to
from bragg.analyze.causes.long_operators import long_operators
from bragg.analyze.causes.needs import IDLE, OPERATORS
from bragg.analyze.causes.text.text_calls import lines_of
from bragg.analyze.causes.thresholds import PLAN_CALL, PLAN_SHARE
from bragg.analyze.engine import HostTime, Rule
from bragg.model import Confidence, Finding

_CUDNN_ATTENTION = (
    "torch.backends.cuda.enable_cudnn_sdp(False) (PyTorch's flash attention needs no plan), "
    "or keep shapes the same: pad, or use a static cache"
)
_CONVOLUTIONS = ("aten::cudnn_convolution", "aten::cudnn_convolution_transpose", "aten::convolution_backward")
_CHANGES = {
    "aten::_cudnn_attention_forward": _CUDNN_ATTENTION,
    "aten::_scaled_dot_product_cudnn_attention": _CUDNN_ATTENTION,
    "aten::_cudnn_attention_backward": _CUDNN_ATTENTION,
    **dict.fromkeys(_CONVOLUTIONS, "keep shapes the same: pad or bucket them"),
}
# cuDNN tries all of its algorithms for each shape that is new.
_TRIES = re.compile(r"\bcudnn\.benchmark = True\b")
_UNTRIED = "leave torch.backends.cudnn.benchmark off, or keep shapes the same: pad or bucket them"
_OTHER = "keep shapes the same from call to call: pad or bucket them; else look for what it compiles or plans"


def _find(evidence: Evidence) -> Iterator[Finding]:
    for operator in long_operators(evidence, evidence.host.planning, PLAN_CALL.value):
        tries = lines_of(evidence, _TRIES) if operator.name in _CONVOLUTIONS else []
        cause = Cause(
            "planning",
            f"{operator.name} keeps the host for {operator.text}, and the GPU waits: it plans or compiles anew",
            _UNTRIED if tries else _CHANGES.get(operator.name, _OTHER),
            operator.gain,
            Confidence.LIKELY if operator.name in _CHANGES else Confidence.HEURISTIC,
            operator.evidence,
        )
        yield moved_to(host_finding(evidence, operator.nodes, operator.idle_ns, cause), tries)


RULE = Rule(
    _find,
    "operators that plan, tune or compile at each call",
    (OPERATORS, IDLE),
    (PLAN_CALL, PLAN_SHARE),
    "keep shapes the same, or choose an implementation that needs no plan",
    host_time=HostTime.CAUSE,
)
