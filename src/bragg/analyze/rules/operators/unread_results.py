"""Results that nothing reads, or only those of a loop's last turn or of one in several, by the text of the program."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.causes.needs import GPU_TIME, OPERATORS, TEXT
from bragg.analyze.causes.text.invariants import Turns
from bragg.analyze.causes.text.program_text import FileText, call_name, names_read, reads_of
from bragg.analyze.causes.text.text_calls import makers_of_called, statements_above
from bragg.analyze.causes.work_finding import Work, line_findings
from bragg.analyze.engine import HostTime, Rule
from bragg.code.python_nodes import parts_of, walk
from bragg.model import Confidence, Finding, FrameKind

_UNREAD = Work(
    "unread-result",
    "a function computes a result that nothing reads",
    "leave it out; where it is returned beside others, let callers ask for it",
    1.0,
    Confidence.HEURISTIC,
    with_host=True,
    least_share=0.1,
    is_launched=True,
)
_OVERWRITTEN = replace(
    _UNREAD,
    what="each turn of a loop computes a result of which only the last turn's is read",
    change="compute it once, after the loop",
    saved=0.9,
)
_SELDOM_READ = replace(
    _UNREAD,
    what="each turn of a loop computes a result that only one of several turns reads",
    change="compute it where it is read, within the `if`",
    saved=0.8,
)
# Calls that do something else than compute, by their names, and texts that take results in other ways.
_ACTS = re.compile(r"\w+_|step|\w*backward|update\w*|append|next|pop|read\w*|load\w*|write\w*|train\w*|fit")
_TAKES = re.compile(r"register_(?:full_)?(?:forward|backward)\w*hook")


def _find(evidence: Evidence) -> Iterator[Finding]:
    tree = evidence.profile.tree
    works = tree.sum_up(evidence.gpu_ns)
    hot = (tree.kind == FrameKind.PYTHON) & (works >= _UNREAD.least_share * float(evidence.gpu_ns.sum()))
    lines = [node for node in np.flatnonzero(hot).tolist() if evidence.text.at(node)]
    yield from line_findings(evidence, [each for each in lines if _is_unread(evidence, each)], _UNREAD)
    yield from line_findings(evidence, [each for each in lines if _is_overwritten(evidence, each)], _OVERWRITTEN)
    yield from line_findings(evidence, [each for each in lines if _is_seldom_read(evidence, each)], _SELDOM_READ)


def _is_unread(evidence: Evidence, line: int) -> bool:
    """Whether nothing reads what a line computes: in its function, or where that returns it with others."""
    (_, file, statement), *above = statements_above(evidence, line)
    name, function = _result(file, statement), file.function_of(statement)
    if not name or isinstance(function, (ast.Module, ast.Lambda)):
        return False
    returned = [each.value for each in parts_of(function, ast.Return) if each.value is not None]
    if not reads_of(function, name):
        return bool(returned)
    at = _places(returned, name)
    if len(at) != 1 or len(reads_of(function, name)) != len(returned) or not above:
        return False
    _, taker, taking = above[0]
    targets = taking.targets[0] if isinstance(taking, ast.Assign) and isinstance(taking.value, ast.Call) else None
    is_taken_apart = isinstance(targets, ast.Tuple) and len(targets.elts) > at[0]
    target = targets.elts[at[0]] if isinstance(targets, ast.Tuple) and is_taken_apart else None
    return isinstance(target, ast.Name) and not reads_of(taker.function_of(taking), target.id)


def _places(returned: list[ast.expr], name: str) -> list[int]:
    """At which places of the tuples that a function returns a variable stands, each once."""
    tuples = [each.elts for each in returned if isinstance(each, ast.Tuple)]
    found = {at for each in tuples for at, part in enumerate(each) if isinstance(part, ast.Name) and part.id == name}
    return sorted(found) if len(tuples) == len(returned) else []


def _is_overwritten(evidence: Evidence, line: int) -> bool:
    """Whether a loop that goes on from turn to turn computes with its state what is read behind the loop alone."""
    at = evidence.text.at(line)
    loops = at[0].loops_of(at[1]) if at else []
    name = _result(*at) if at else ""
    if at is None or not loops or not name or not isinstance(at[1], ast.Assign):
        return False
    loop, function = loops[-1], at[0].function_of(at[1])
    turns = Turns(at[0], loop)
    is_behind = [each.lineno > (loop.end_lineno or 0) for each in reads_of(function, name)]
    return bool(names_read(at[1].value) & turns.carried) and not turns.trains and bool(is_behind) and all(is_behind)


def _is_seldom_read(evidence: Evidence, line: int) -> bool:
    """Whether turns of a loop compute what it reads in some of them alone: `if step % 100 == 0: print(norm)`."""
    at = evidence.text.at(line)
    loops = at[0].loops_of(at[1]) if at else []
    name = _result(*at) if at else ""
    if at is None or not loops or not name:
        return False
    loop, turns = loops[-1], Turns(at[0], loops[-1])
    reads = reads_of(at[0].function_of(at[1]), name)
    inside = [each for each in reads if loop.lineno <= each.lineno <= (loop.end_lineno or loop.lineno)]
    return bool(inside) and all(map(turns.is_seldom, inside)) and not turns.is_seldom(at[1])


def _result(file: FileText, statement: ast.stmt) -> str:
    """The variable that a statement sets to what calls compute, which do nothing else; empty: it is none."""
    target = statement.targets[0] if isinstance(statement, ast.Assign) and len(statement.targets) == 1 else None
    calls = list(parts_of(statement, ast.Call))
    if not isinstance(target, ast.Name) or not calls or any(_acts(file, each) for each in calls):
        return ""
    hooks = (each for each in parts_of(file.tree, ast.Call) if _TAKES.fullmatch(call_name(each)))
    return "" if any(hooks) else target.id


def _acts(file: FileText, call: ast.Call) -> bool:
    """Whether a call changes something: by its name, or as a function or a class of this file does."""
    made = makers_of_called(file, call)
    owners = [file.classes[call_name(each)] for each in made if call_name(each) in file.classes]
    parts = [part for each in (*file.functions.get(call_name(call), []), *owners) for part in _body(each)]
    return bool(_ACTS.fullmatch(call_name(call))) or any(map(_changes, parts))


def _body(part: ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[ast.AST]:
    """Parts of a function, or of the methods of a class that its constructor is not one of."""
    methods = part.body if isinstance(part, ast.ClassDef) else [part]
    for each in methods:
        if getattr(each, "name", "") != "__init__":
            yield from walk(each)


def _changes(part: ast.AST) -> bool:
    is_set = isinstance(part, (ast.Attribute, ast.Subscript)) and isinstance(part.ctx, ast.Store)
    return is_set or isinstance(part, (ast.Global, ast.Nonlocal, ast.Yield)) or _is_done(part)


def _is_done(part: ast.AST) -> bool:
    return isinstance(part, ast.Expr) and isinstance(part.value, ast.Call)


RULE = Rule(
    _find,
    "results that nothing reads, or only those of a loop's last turn",
    (GPU_TIME, OPERATORS, TEXT),
    (),
    _UNREAD.change,
    host_time=HostTime.CAUSE,
)
