"""Gradients of indexing, which sort the indices and add rows up one after the other."""

from __future__ import annotations

import re
from collections.abc import Iterator

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.causes.needs import GPU_TIME
from bragg.analyze.causes.paths import below, named
from bragg.analyze.causes.thresholds import MUCH_GPU
from bragg.analyze.causes.work_finding import Work, work_findings
from bragg.analyze.engine import Rule
from bragg.model import Confidence, Finding

_WORK = Work(
    "indexing-gradient",
    "the gradient of indexing (x[rows]), which sorts the rows and adds those that repeat one after the other",
    "x.index_select(0, rows) or torch.nn.functional.embedding, whose gradients add in parallel",
    0.4,
    Confidence.HEURISTIC,
    is_launched=True,
)
# The operators and the kernel that do so; sorts of theirs have general names.
_GRADIENT = re.compile(r"IndexBackward\d*|aten::_?index_put(?:_impl)?_|.*indexing_backward_kernel.*")


def _find(evidence: Evidence) -> Iterator[Finding]:
    profile = evidence.profile
    if not named(profile, lambda name: "indexing_backward_kernel" in name).any():
        return
    yield from work_findings(evidence, below(profile, named(profile, _GRADIENT.fullmatch)), _WORK)


RULE = Rule(_find, "gradients of indexing that sort", (GPU_TIME,), (MUCH_GPU,), _WORK.change)
