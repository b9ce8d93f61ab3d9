"""Fast operators that a line of the program switches off."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.causes.host_finding import moved_to
from bragg.analyze.causes.needs import GPU_TIME, OPERATORS, TEXT
from bragg.analyze.causes.paths import below, named
from bragg.analyze.causes.text.text_calls import lines_of
from bragg.analyze.causes.work_finding import Work, work_findings
from bragg.analyze.engine import Rule
from bragg.model import Confidence, Finding

_WORK = Work(
    "switched-off",
    "operators run in their slow way, because the program switches off the fast one",
    "remove the switch, unless results have to be the same to the last bit, or something is debugged",
    0.7,
    Confidence.LIKELY,
    least_share=0.05,
    is_launched=True,
)


@dataclass(frozen=True)
class _Switch:
    """A line that switches something off.

    Attributes:
        text: That finds it in a statement.
        operators: Which are slower then, where other operators are in them.
        inner: What these are; none where every one is slower.
        saved: Share of their time that goes away.
    """

    text: re.Pattern[str]
    operators: re.Pattern[str]
    inner: re.Pattern[str]
    saved: float


_SWITCHES = (
    _Switch(
        re.compile(r"use_deterministic_algorithms\((?:mode=)?True"),
        re.compile(
            r"aten::(?:index_add|scatter_add|index_put|scatter|index_copy|put|gather|\w*embedding\w*)_?|\w+Backward\d*"
        ),
        re.compile(r"aten::_?index_put(?:_impl)?_|aten::sort|.*RadixSort.*"),
        0.7,
    ),
    _Switch(
        re.compile(r"cudnn\.enabled = False|cudnn\.flags\((?:enabled=)?False"),
        re.compile(r"aten::(?:_convolution|convolution_backward|lstm|gru)"),
        re.compile(r"aten::(?:_slow_conv\w*|slow_conv\w*|thnn_conv\w*|_conv_depthwise\w*|lstm|gru)"),
        0.6,
    ),
    _Switch(
        re.compile(r"enable_(?:flash|mem_efficient)_sdp\((?:enabled=)?False|SDPBackend\.MATH|enable_flash=False"),
        re.compile(r"aten::scaled_dot_product_attention"),
        re.compile(r"aten::_scaled_dot_product_attention_math"),
        0.8,
    ),
)


def _find(evidence: Evidence) -> Iterator[Finding]:
    profile = evidence.profile
    for switch in _SWITCHES:
        lines = lines_of(evidence, switch.text)
        if not lines:
            continue
        slow = named(profile, switch.operators.fullmatch)
        inner = below(profile, slow) & named(profile, switch.inner.fullmatch)
        nodes = below(profile, slow & (profile.tree.sum_up(inner.astype("int64")) > 0))
        for finding in work_findings(evidence, nodes, replace(_WORK, saved=switch.saved)):
            yield moved_to(finding, lines)


RULE = Rule(_find, "fast operators that the program switches off", (GPU_TIME, OPERATORS, TEXT), (), _WORK.change)
