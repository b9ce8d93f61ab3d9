"""Functions whose value the program knows already: a loop calls them again for what it kept."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator

import numpy as np

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.causes.needs import GPU_TIME, OPERATORS, TEXT
from bragg.analyze.causes.text.program_text import FileText, Loop, call_name, names_read
from bragg.analyze.causes.work_finding import Work, line_findings
from bragg.analyze.engine import HostTime, Rule
from bragg.code.python_nodes import parts_of, walk
from bragg.model import Confidence, Finding, FrameKind

_WORK = Work(
    "repeated-evaluation",
    "a function is computed again for a value of which the result is known: it was kept from this turn or the last",
    "keep the result beside the value: where the new value is taken, take its result, too",
    0.5,
    Confidence.HEURISTIC,
    with_host=True,
    least_share=0.2,
    is_launched=True,
)


def _find(evidence: Evidence) -> Iterator[Finding]:
    tree = evidence.profile.tree
    again = [node for node in np.flatnonzero(tree.kind == FrameKind.PYTHON).tolist() if _computes_again(evidence, node)]
    yield from line_findings(evidence, again, _WORK)


def _computes_again(evidence: Evidence, node: int) -> bool:
    at = evidence.text.at(node)
    if at is None:
        return False
    file, statement = at
    own = list(_own_calls(file, statement))
    for loop in file.loops_of(statement) if own else ():
        calls = [each for inner in parts_of(loop, ast.stmt) for each in _own_calls(file, inner)]
        alike = [(call, each) for call in own for each in calls if ast.dump(each.func) == ast.dump(call.func)]
        if any(_is_known(loop, *pair) for pair in alike):
            return True
    return False


def _own_calls(file: FileText, statement: ast.stmt) -> Iterator[ast.Call]:
    """Calls of the program's own functions with variables, which a statement makes itself."""
    for each in walk(statement) if not hasattr(statement, "body") else ():
        if isinstance(each, ast.Call) and each.args and isinstance(each.args[0], ast.Name):
            is_handed = isinstance(each.func, ast.Name) and not hasattr(builtins, each.func.id)
            if call_name(each) in file.functions or is_handed:
                yield each


def _is_known(loop: Loop, call: ast.Call, other: ast.Call) -> bool:
    """Whether a loop makes the first argument of a call of that of another one, whose other arguments are the same."""
    (kept, *rest), (new, *others) = call.args, other.args
    if not isinstance(kept, ast.Name) or not isinstance(new, ast.Name) or kept.id == new.id:
        return False
    if [ast.dump(each) for each in rest] != [ast.dump(each) for each in others]:
        return False
    return any(
        isinstance(each, ast.Assign)
        and any(isinstance(target, ast.Name) and target.id == kept.id for target in each.targets)
        and _chooses(each.value, kept.id, new.id)
        for each in walk(loop)
    )


def _chooses(value: ast.expr, kept: str, new: str) -> bool:
    """Whether a value is the new one, or one of both: `torch.where(accept, new, kept)`, `new if accept else kept`."""
    if isinstance(value, ast.Name):
        return value.id == new
    is_choice = isinstance(value, ast.IfExp) or (isinstance(value, ast.Call) and call_name(value) == "where")
    return is_choice and {kept, new} <= names_read(value)


RULE = Rule(
    _find,
    "functions that a loop computes again for a value that it kept",
    (GPU_TIME, OPERATORS, TEXT),
    (),
    _WORK.change,
    host_time=HostTime.CAUSE,
)
