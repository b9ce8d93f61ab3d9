"""Copies that only change the type or the layout of a tensor."""

from __future__ import annotations

import re

from bragg.analyze.causes.work_finding import Work
from bragg.analyze.rules.work_rule import work_rule
from bragg.model import Confidence

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

RULE = work_rule(_WORK, _COPIES, "copies that change only type or layout")
