"""Mixtures whose experts all compute all rows, though each row uses few of them, by the text of the program."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import numpy as np

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.causes.host_finding import moved
from bragg.analyze.causes.needs import GPU_TIME, OPERATORS, TEXT
from bragg.analyze.causes.paths import below, place_of
from bragg.analyze.causes.program_text import FileText, Loop, call_name, names_read, names_set
from bragg.analyze.causes.work_finding import Work, work_findings
from bragg.analyze.engine import Rule
from bragg.model import Confidence, Finding, FrameKind
from bragg.model.ids import NodeId

__all__ = ["RULE"]

_WORK = Work(
    "all-experts",
    "each expert computes all rows, and weights that are mostly zero choose among the results",
    "give each expert its rows alone: rows = weights[:, e].nonzero()[:, 0]; out.index_add_(0, rows, expert(x[rows])); "
    "or sort rows by expert, and multiply in groups",
    0.7,
    Confidence.HEURISTIC,
    least_share=0.2,
    is_launched=True,
)


def _find(evidence: Evidence) -> Iterator[Finding]:
    tree = evidence.profile.tree
    works = tree.sum_up(evidence.gpu_ns)
    lines = np.flatnonzero((tree.kind == FrameKind.PYTHON) & (works > 0)).tolist()
    found = [node for node in lines if (at := evidence.text.at(node)) and _mixes(*at)]
    chosen = np.zeros(len(tree), np.bool_)
    chosen[found] = True
    for finding in work_findings(evidence, below(evidence.profile, chosen), _WORK):
        yield moved(finding, place_of(evidence.profile, NodeId(max(found, key=lambda each: float(works[each])))))


def _mixes(file: FileText, statement: ast.stmt) -> bool:
    """Whether a loop over networks calls each with the same rows, in a function that takes the largest weights."""
    parts = ast.walk(file.function_of(statement))
    chooses = any(isinstance(each, ast.Call) and call_name(each) == "topk" for each in parts)
    return chooses and any(_calls_each(statement, loop) for loop in file.loops_of(statement))


def _calls_each(statement: ast.stmt, loop: Loop) -> bool:
    set_by_loop = names_set(loop.target) if isinstance(loop, ast.For) else set()
    return any(
        isinstance(each, ast.Call)
        and isinstance(each.func, ast.Name)
        and each.func.id in set_by_loop
        and bool(each.args)
        and isinstance(each.args[0], ast.Name)
        and not names_read(each.args[0]) & names_set(loop)
        for each in ast.walk(statement)
    )


RULE = Rule(_find, "mixtures whose experts all compute all rows", (GPU_TIME, OPERATORS, TEXT), (), _WORK.change)
