"""Dropout, and batch statistics, in programs that only infer."""

from __future__ import annotations

import re
from collections.abc import Iterator

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.causes.needs import GPU_TIME, OPERATORS
from bragg.analyze.causes.paths import BACKWARD, below, named
from bragg.analyze.causes.text.text_calls import lines_of
from bragg.analyze.causes.work_finding import Work, work_findings
from bragg.analyze.engine import HostTime, Rule
from bragg.model import Confidence, Finding

_WORK = Work(
    "training-mode",
    "dropout and batch statistics, as in training, though no backward pass runs",
    "model.eval() before inference: its results are random, or depend on the batch, without it",
    0.9,
    Confidence.LIKELY,
    with_host=True,
    least_share=0.01,
    is_launched=True,
)
_DROPS = re.compile(r"aten::(?:native_dropout|_fused_dropout|(?:feature_|alpha_)*dropout_?)")
_GATHERS = re.compile(r"batch_norm_collect_statistics|bn_fw_tr|BNFwdTraining", re.I)
_EVALUATES, _TRAINS = re.compile(r"\.eval\(\)"), re.compile(r"\.train\(\)")


def _find(evidence: Evidence) -> Iterator[Finding]:
    profile = evidence.profile
    if named(profile, BACKWARD.fullmatch).any() or profile.run.evaluated_nodes or _is_wanted(evidence):
        return
    nodes = below(profile, named(profile, _DROPS.fullmatch)) | named(profile, _GATHERS.search)
    yield from work_findings(evidence, nodes, _WORK)


def _is_wanted(evidence: Evidence) -> bool:
    """Whether the program switches evaluation on and, of some layers, training, as those do that sample dropout."""
    return all(lines_of(evidence, each) for each in (_EVALUATES, _TRAINS))


RULE = Rule(
    _find,
    "dropout and batch statistics in programs that only infer",
    (GPU_TIME, OPERATORS),
    (),
    _WORK.change,
    host_time=HostTime.CAUSE,
)
