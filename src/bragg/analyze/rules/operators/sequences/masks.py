"""Triangular masks that are made anew again and again."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.causes.needs import GPU_TIME, OPERATORS
from bragg.analyze.causes.paths import below, named
from bragg.analyze.causes.thresholds import MUCH_GPU
from bragg.analyze.causes.work_finding import Work, work_findings
from bragg.analyze.engine import HostTime, Rule
from bragg.model import Confidence, Finding, Quantity
from bragg.model.finding import percent_text
from bragg.model.table import BoolArray

_WORK = Work(
    "rebuilt-mask",
    "triangular masks are filled and cut anew, though each is as the last one was",
    "is_causal=True of scaled_dot_product_attention, which needs no mask; or make it once: register_buffer",
    1.0,
    Confidence.LIKELY,
    with_host=True,
    is_launched=True,
)
_CUTS = re.compile(r"aten::(?:triu|tril)_?")
_FILLS = re.compile(r"aten::(?:ones|zeros|full|empty)(?:_like)?|aten::(?:new_\w+|fill_|zero_)")
_OFTEN = 0.5  # of the steps: more rarely, it is made for a new size
_ATTENTION = "aten::scaled_dot_product_attention"
_CAUSAL = 0.5  # of its tiles lie above the diagonal: only is_causal=True leaves them out


def _find(evidence: Evidence) -> Iterator[Finding]:
    profile = evidence.profile
    fills = named(profile, _FILLS.fullmatch)
    cuts = evidence.callers.near(named(profile, _CUTS.fullmatch), fills)
    if float(evidence.calls[cuts].sum()) >= _OFTEN * evidence.steps:
        for finding in work_findings(evidence, below(profile, cuts | evidence.callers.near(fills, cuts)), _WORK):
            yield _with_attention(evidence, finding, below(profile, _attends(evidence, cuts)))


def _with_attention(evidence: Evidence, finding: Finding, attends: BoolArray) -> Finding:
    """The finding with what attention takes for the tiles that the mask hides."""
    more, gpu_ns = evidence.gpu_gain(attends, _CAUSAL), float(evidence.gpu_ns[attends].sum())
    if finding.gain is None or more is None or not more.wall_ns:
        return finding
    share = gpu_ns / float(evidence.gpu_ns.sum())
    return replace(
        finding,
        message=f"{finding.message}; attention computes what they hide, too: {percent_text(share)} of it",
        evidence=(*finding.evidence, Quantity("attention's share of the GPU time", share, "share")),
        gain=evidence.gain(finding.gain.wall_ns + more.wall_ns, finding.gain.limit),
    )


def _attends(evidence: Evidence, cuts: BoolArray) -> BoolArray:
    """Attention that the function that cuts the masks calls itself: [n_nodes]."""
    function = evidence.callers.function
    return named(evidence.profile, _ATTENTION.__eq__) & np.isin(function, function[cuts])


RULE = Rule(
    _find, "triangular masks that are made again", (GPU_TIME, OPERATORS), (MUCH_GPU,), _WORK.change, HostTime.CAUSE
)
