"""Copies of all parameters of a network that a program makes in each step."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import numpy as np

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.causes.needs import GPU_TIME, OPERATORS, TEXT
from bragg.analyze.causes.paths import named
from bragg.analyze.causes.recurring import recurs
from bragg.analyze.causes.text.text_calls import calls_at, statements_above
from bragg.analyze.causes.work_finding import Work, line_findings
from bragg.analyze.engine import HostTime, Rule
from bragg.model import Confidence, Finding
from bragg.model.ids import NodeId

_WORK = Work(
    "copied-parameters",
    "all parameters are copied in each step",
    "copy them only when they are the best so far, or every n-th step; an average of them: torch.optim.swa_utils, "
    "torch._foreach_lerp_",
    0.9,
    Confidence.HEURISTIC,
    with_host=True,
    least_share=0.05,
    is_launched=True,
)
_COPIES = re.compile(r"aten::(?:clone|copy_|_to_copy|to)")


def _find(evidence: Evidence) -> Iterator[Finding]:
    copies = named(evidence.profile, _COPIES.fullmatch) & evidence.has_work
    lines = {line for node in np.flatnonzero(copies).tolist() if (line := _copying_line(evidence, node)) is not None}
    yield from line_findings(evidence, sorted(line for line in lines if recurs(evidence, [line])), _WORK)


def _copying_line(evidence: Evidence, node: int) -> NodeId | None:
    """The line that copies a network: `copy.deepcopy(net)`, `{k: v.clone() for k, v in net.state_dict()}`."""
    return next((line for line, _, statement in statements_above(evidence, node) if _copies_all(statement)), None)


def _copies_all(statement: ast.stmt) -> bool:
    if hasattr(statement, "body"):
        return False
    return bool(
        calls_at(statement, "deepcopy") or (calls_at(statement, "state_dict") and calls_at(statement, "clone", "cpu"))
    )


RULE = Rule(
    _find,
    "parameters of networks that are copied in each step",
    (GPU_TIME, OPERATORS, TEXT),
    (),
    _WORK.change,
    host_time=HostTime.CAUSE,
)
