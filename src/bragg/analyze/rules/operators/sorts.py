"""Whole sorts of which a program takes a part."""

from __future__ import annotations

import re
from collections.abc import Iterator

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.causes.needs import GPU_TIME, OPERATORS
from bragg.analyze.causes.paths import below, named
from bragg.analyze.causes.thresholds import MUCH_GPU
from bragg.analyze.causes.work_finding import Work, work_findings
from bragg.analyze.engine import Rule
from bragg.model import Confidence, Finding

_WORK = Work(
    "partial-sort",
    "sorts, of whose result the program takes a part",
    "torch.topk(x, k) or x.kthvalue(k), if the first or the last few are enough: they do not order the rest",
    0.7,
    Confidence.HEURISTIC,
    is_launched=True,
)
_SORTS = re.compile(r"aten::(?:arg)?sort")
_TAKES = re.compile(r"aten::(?:slice|select|narrow)")


def _find(evidence: Evidence) -> Iterator[Finding]:
    profile = evidence.profile
    sorts = named(profile, _SORTS.fullmatch)
    yield from work_findings(
        evidence, below(profile, evidence.callers.near(sorts, named(profile, _TAKES.fullmatch))), _WORK
    )


RULE = Rule(_find, "sorts of which a part is taken", (GPU_TIME, OPERATORS), (MUCH_GPU,), _WORK.change)
