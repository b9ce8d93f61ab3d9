"""Copies that only change the type or the layout of a tensor."""

from __future__ import annotations

import re
from collections.abc import Iterator

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.causes.needs import GPU_TIME
from bragg.analyze.causes.paths import named
from bragg.analyze.causes.thresholds import MUCH_GPU
from bragg.analyze.causes.work_finding import Work, work_findings
from bragg.analyze.engine import Rule, Subject
from bragg.model import Confidence, Finding

__all__ = ["RULE"]

_WORK = Work(
    "type-copies",
    "copies that only change type or layout (to, contiguous, autocast)",
    "keep tensors in one type and layout: bfloat16 weights instead of autocast, no .contiguous() in the step",
    0.7,
    Confidence.HEURISTIC,
    least_share=0.05,
)
_COPIES = re.compile(r"direct_copy_kernel|copy_kernel_cuda")


def _find(evidence: Evidence) -> Iterator[Finding]:
    yield from work_findings(evidence, named(evidence.profile, _COPIES.search), _WORK)


RULE = Rule(
    _find,
    Subject.ANALYSIS,
    "copies that change only type or layout",
    (GPU_TIME,),
    (MUCH_GPU,),
    _WORK.change,
)
