"""Operators that compute on the CPU while a GPU waits."""

from __future__ import annotations

from collections.abc import Iterator

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.causes.host_finding import Cause, host_finding
from bragg.analyze.causes.long_operators import long_operators
from bragg.analyze.causes.needs import IDLE, OPERATORS
from bragg.analyze.causes.thresholds import CPU_CALL, PLAN_SHARE
from bragg.analyze.engine import HostTime, Rule
from bragg.model import Confidence, Finding

_RANDOM = frozenset(["aten::normal_", "aten::uniform_", "aten::random_", "aten::bernoulli_", "aten::randperm"])


def _find(evidence: Evidence) -> Iterator[Finding]:
    for operator in long_operators(evidence, evidence.host.computing, CPU_CALL.value):
        cause = Cause(
            "cpu-work",
            f"{operator.name} computes on the CPU, {operator.text}, and the GPU waits",
            'make it on the GPU: device="cuda"'
            if operator.name in _RANDOM
            else "move it to the GPU, or to DataLoader workers",
            operator.gain,
            Confidence.LIKELY,
            operator.evidence,
        )
        yield host_finding(evidence, operator.nodes, operator.idle_ns, cause)


RULE = Rule(
    _find,
    "operators that compute on the CPU while the GPU waits",
    (OPERATORS, IDLE),
    (CPU_CALL, PLAN_SHARE),
    'make data on the GPU (device="cuda"), or prepare it in workers',
    host_time=HostTime.CAUSE,
)
