"""Copies within the memory of a GPU."""

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
    "device-copies",
    "copies within the memory of the GPU",
    "write results where they are needed: out=, a buffer that is large enough instead of cat() in each step, views "
    "instead of clone(), donate_argnums in JAX",
    1.0,
    Confidence.LIKELY,
    least_share=0.05,
)

# What PyTorch's cat and stack launch.
_COPIES = re.compile(r"^copy DtoD$|CatArrayBatchedCopy")


def _find(evidence: Evidence) -> Iterator[Finding]:
    yield from work_findings(evidence, named(evidence.profile, _COPIES.search), _WORK)


RULE = Rule(
    _find,
    Subject.ANALYSIS,
    "copies within the memory of the GPU",
    (GPU_TIME,),
    (MUCH_GPU,),
    _WORK.change,
)
