"""Copies that write the same values several times, because tensors are repeated instead of broadcast."""

from __future__ import annotations

import re
from collections.abc import Iterator

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.causes.needs import GPU_TIME, OPERATORS
from bragg.analyze.causes.paths import below, named
from bragg.analyze.causes.thresholds import MUCH_GPU
from bragg.analyze.causes.work_finding import Work, work_findings
from bragg.analyze.engine import HostTime, Rule
from bragg.model import Confidence, Finding
from bragg.model.table import BoolArray

_WORK = Work(
    "repeated-tensor",
    "copies that repeat a tensor in memory (repeat, expand with contiguous or reshape)",
    "leave it to the operators to broadcast: x[:, None], or expand() without a copy; enable_gqa=True for heads of "
    "attention",
    0.9,
    Confidence.LIKELY,
    with_host=True,
    is_launched=True,
)
_REPEATS = re.compile(r"aten::(?:repeat|tile|repeat_interleave)")
_EXPANDS, _WRITES = re.compile(r"aten::expand(?:_as)?"), re.compile(r"aten::(?:reshape|contiguous|clone|flatten)")


def repetitions(evidence: Evidence) -> BoolArray:
    """What repeats tensors in memory, with what runs below it: [n_nodes]."""
    profile, callers = evidence.profile, evidence.callers
    called, works = callers.line > 0, evidence.has_work
    expands, writes = (named(profile, each.fullmatch) & called for each in (_EXPANDS, _WRITES))
    found: BoolArray = named(profile, _REPEATS.fullmatch) & called & works
    return below(profile, found | callers.near(writes & works, expands))


def _find(evidence: Evidence) -> Iterator[Finding]:
    yield from work_findings(evidence, repetitions(evidence), _WORK)


RULE = Rule(
    _find,
    "tensors that are repeated in memory",
    (GPU_TIME, OPERATORS),
    (MUCH_GPU,),
    _WORK.change,
    host_time=HostTime.CAUSE,
)
