"""Batch norms behind convolutions, whose statistics no longer change."""

from __future__ import annotations

import re
from collections.abc import Iterator

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.causes.needs import GPU_TIME, OPERATORS
from bragg.analyze.causes.paths import below, named
from bragg.analyze.causes.work_finding import Work, work_findings
from bragg.analyze.engine import HostTime, Rule
from bragg.analyze.rules.operators.training_mode import GATHERS, only_infers
from bragg.model import Confidence, Finding

__all__ = ["RULE"]

_WORK = Work(
    "unfolded-norm",
    "batch norms scale and shift what convolutions before them have computed, by numbers that no longer change",
    "fold them into the weights, once after eval(): torch.nn.utils.fusion.fuse_conv_bn_eval(conv, norm); "
    "torch.compile fuses them",
    0.9,
    Confidence.HEURISTIC,
    with_host=True,
    least_share=0.1,
    is_launched=True,
)
_CONVOLUTIONS = re.compile(r"aten::conv[123]d")


def _find(evidence: Evidence) -> Iterator[Finding]:
    profile = evidence.profile
    if not only_infers(evidence):
        return
    norms = named(profile, "aten::batch_norm".__eq__) & evidence.has_work
    gathers = profile.tree.sum_up(named(profile, GATHERS.search).astype("int64")) > 0
    folded = evidence.callers.near(norms & ~gathers, named(profile, _CONVOLUTIONS.fullmatch))
    yield from work_findings(evidence, below(profile, folded), _WORK)


RULE = Rule(
    _find,
    "batch norms behind convolutions in programs that only infer",
    (GPU_TIME, OPERATORS),
    (),
    _WORK.change,
    host_time=HostTime.CAUSE,
)
