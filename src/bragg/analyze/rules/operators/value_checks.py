"""Checks of values on the GPU: of arguments by torch.distributions, and the program's own."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import replace

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.causes.needs import GPU_TIME, OPERATORS
from bragg.analyze.causes.paths import below, in_files, named
from bragg.analyze.causes.text.program_text import FileText
from bragg.analyze.causes.text.text_calls import fits
from bragg.analyze.causes.work_finding import Work, work_findings
from bragg.analyze.engine import HostTime, Rule
from bragg.model import Confidence, Finding
from bragg.model.table import BoolArray

_WORK = Work(
    "value-checks",
    "torch.distributions checks the values that it is given, and waits for the answer",
    "torch.distributions.Distribution.set_default_validate_args(False), or validate_args=False where one is made",
    1.0,
    Confidence.LIKELY,
    with_host=True,
    least_share=0.0,
    is_launched=True,
)
_OWN = replace(
    _WORK,
    what="the program looks at values of tensors, to stop if they are wrong, and waits for the answer",
    change="check now and then, or when debugging; torch._assert_async(ok) does not wait",
    confidence=Confidence.HEURISTIC,
)
_CONSTRAINTS = re.compile(r"[/\\]torch[/\\]distributions[/\\]constraints\.py$")
_BASE = re.compile(r"[/\\]torch[/\\]distributions[/\\]distribution\.py$")
_CHECKS = re.compile(r"(?:Distribution\.)?(?:__init__|_validate_sample)")


def _find(evidence: Evidence) -> Iterator[Finding]:
    profile = evidence.profile
    of_distributions = in_files(profile, _BASE) & named(profile, _CHECKS.fullmatch)
    library = below(profile, of_distributions | in_files(profile, _CONSTRAINTS))
    operators = named(profile, lambda name: name.startswith("aten::")) & ~library
    for nodes, work in ((library, _WORK), (below(profile, fits(evidence, operators, _stops)), _OWN)):
        if _runs_often(evidence, nodes):
            yield from work_findings(evidence, nodes, work)


def _runs_often(evidence: Evidence, nodes: BoolArray) -> bool:
    return float(evidence.calls[nodes].max(initial=0.0)) >= max(evidence.steps, 1) / 2


def _stops(_: FileText, statement: ast.stmt) -> bool:
    """Whether a statement does nothing but to end the program."""
    if isinstance(statement, ast.Assert):
        return True
    return isinstance(statement, ast.If) and all(isinstance(each, ast.Raise) for each in statement.body)


RULE = Rule(
    _find,
    "checks of values on the GPU",
    (GPU_TIME, OPERATORS),
    (),
    "validate_args=False for distributions; own checks now and then, or torch._assert_async",
    host_time=HostTime.CAUSE,
)
