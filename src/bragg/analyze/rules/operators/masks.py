"""Triangular masks that are made anew again and again."""

from __future__ import annotations

import re
from collections.abc import Iterator

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.causes.needs import GPU_TIME, OPERATORS
from bragg.analyze.causes.paths import below, beside, named
from bragg.analyze.causes.thresholds import MUCH_GPU
from bragg.analyze.causes.work_finding import Work, work_findings
from bragg.analyze.engine import HostTime, Rule
from bragg.model import Confidence, Finding

__all__ = ["RULE"]

_WORK = Work(
    "rebuilt-mask",
    "triangular masks are filled and cut anew, though each is as the last one was",
    "is_causal=True of scaled_dot_product_attention, which needs no mask; or make it once: register_buffer",
    1.0,
    Confidence.LIKELY,
    with_host=True,
    is_launched=True,
)
_CUTS = re.compile(r"aten::(?:triu|tril)")
_FILLS = re.compile(r"aten::(?:ones|zeros|full|empty)(?:_like)?|aten::fill_")
_OFTEN = 0.5  # of the steps: more rarely, it is made for a new size


def _find(evidence: Evidence) -> Iterator[Finding]:
    profile = evidence.profile
    fills = named(profile, _FILLS.fullmatch)
    cuts = beside(profile, named(profile, _CUTS.fullmatch), fills)
    if float(evidence.calls[cuts].sum()) >= _OFTEN * evidence.steps:
        yield from work_findings(evidence, below(profile, cuts | beside(profile, fills, cuts)), _WORK)


RULE = Rule(
    _find, "triangular masks that are made again", (GPU_TIME, OPERATORS), (MUCH_GPU,), _WORK.change, HostTime.CAUSE
)
