"""Weights that PyTorch's parametrizations compute again, though their parameters are as they were."""

from __future__ import annotations

import re
from collections.abc import Iterator

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.causes.needs import GPU_TIME, OPERATORS
from bragg.analyze.causes.paths import BACKWARD, below, in_files, named
from bragg.analyze.causes.work_finding import Work, work_findings
from bragg.analyze.engine import HostTime, Rule
from bragg.model import Confidence, Finding

_WORK = Work(
    "repeated-parametrization",
    "weights are computed from their parametrizations (weight_norm, orthogonal, spectral_norm) each time they are used",
    "torch.nn.utils.parametrize.cached() around what uses them several times; for inference remove_parametrizations",
    0.9,
    Confidence.LIKELY,
    with_host=True,
    least_share=0.1,
    is_launched=True,
)
_FILE = re.compile(r"[/\\]torch[/\\]nn[/\\]utils[/\\](?:parametrize|parametrizations|weight_norm|spectral_norm)\.py$")
_SEVERAL = 4  # uses in a step: each needs one


def _find(evidence: Evidence) -> Iterator[Finding]:
    profile = evidence.profile
    made = below(profile, in_files(profile, _FILE))
    trains = named(profile, BACKWARD.fullmatch).any() or bool(profile.run.evaluated_nodes)
    if trains:
        often = made & (evidence.calls >= _SEVERAL * evidence.steps)
        made &= below(profile, often)
    yield from work_findings(evidence, made, _WORK)


RULE = Rule(
    _find,
    "weights that parametrizations compute again",
    (GPU_TIME, OPERATORS),
    (),
    _WORK.change,
    host_time=HostTime.CAUSE,
)
