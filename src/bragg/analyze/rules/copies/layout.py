"""Kernels that turn NCHW tensors into NHWC and back around convolutions."""

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
    "layout-conversions",
    "kernels that only convert between NCHW and NHWC",
    "model.to(memory_format=torch.channels_last), and the same for its input",
    1.0,
    Confidence.PROVEN,
)
_CONVERTS = re.compile(r"nchwToNhwc|nhwcToNchw", re.I)


def _find(evidence: Evidence) -> Iterator[Finding]:
    yield from work_findings(evidence, named(evidence.profile, _CONVERTS.search), _WORK)


RULE = Rule(
    _find,
    Subject.ANALYSIS,
    "conversions between NCHW and NHWC around convolutions",
    (GPU_TIME,),
    (MUCH_GPU,),
    _WORK.change,
)
