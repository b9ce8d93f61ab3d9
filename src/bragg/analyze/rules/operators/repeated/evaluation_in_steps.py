"""Evaluations that a training makes in each step, by the text of the program."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import numpy as np

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.causes.needs import GPU_TIME, OPERATORS, TEXT
from bragg.analyze.causes.paths import named
from bragg.analyze.causes.text.program_text import FileText, Loop, call_name, names_read, names_set
from bragg.analyze.causes.work_finding import Work, line_findings
from bragg.analyze.engine import HostTime, Rule
from bragg.code.python_nodes import parts_of, walk
from bragg.model import Confidence, Finding, FrameKind

_WORK = Work(
    "evaluation-in-steps",
    "each step of the training evaluates the network",
    "evaluate every few hundred steps, or once an epoch, or on a part of the data",
    0.9,
    Confidence.HEURISTIC,
    with_host=True,
    least_share=0.2,
    is_launched=True,
)
_LAYERS = re.compile(r"aten::(?:\w*conv\w*|linear|\w*mm|matmul|embedding\w*|lstm|gru)$")
_WITHOUT_GRADIENTS = {"no_grad", "inference_mode", "eval"}


def _find(evidence: Evidence) -> Iterator[Finding]:
    tree = evidence.profile.tree
    works = tree.sum_up(evidence.gpu_ns)
    hot = (tree.kind == FrameKind.PYTHON) & (works >= _WORK.least_share * float(evidence.gpu_ns.sum()))
    hot &= tree.sum_up(named(evidence.profile, _LAYERS.search).astype(np.int64)) > 0  # not an average of parameters
    found = [node for node in np.flatnonzero(hot).tolist() if (at := evidence.text.at(node)) and _evaluates(*at)]
    yield from line_findings(evidence, found, _WORK)


def _evaluates(file: FileText, statement: ast.stmt) -> bool:
    """Whether a statement of each turn of a training calls what needs no gradients, and no loss is made of it."""
    loops = file.loops_of(statement)
    if not loops or file.parents[statement] is not loops[-1] or not (losses := _losses(loops[-1])):
        return False
    called = list(parts_of(statement, ast.Call))
    functions = [function for each in called for function in file.functions.get(call_name(each), [])]
    parts = (part for each in functions for part in walk(each))
    named = {call_name(part) for part in parts if isinstance(part, (ast.Name, ast.Attribute))}
    used = {name for loss in losses for part in file.origins(loss) for name in _name(part)}
    return bool(named & _WITHOUT_GRADIENTS) and not names_set(statement) & used


def _losses(loop: Loop) -> list[ast.expr]:
    """What the backward passes of a loop begin with."""
    return [
        each.func.value
        for each in parts_of(loop, ast.Call)
        if isinstance(each.func, ast.Attribute) and each.func.attr == "backward"
    ]


def _name(part: ast.AST) -> set[str]:
    return names_read(part) if isinstance(part, ast.Name) else set()


RULE = Rule(
    _find,
    "evaluations in each step of a training",
    (GPU_TIME, OPERATORS, TEXT),
    (),
    _WORK.change,
    host_time=HostTime.CAUSE,
)
