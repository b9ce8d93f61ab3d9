"""Tensors that are copied whole to add a row, to move rows by one, or to reorder them, by the text of the program."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from dataclasses import replace

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.causes.host_work import WORK_TIME
from bragg.analyze.causes.needs import OPERATORS, TEXT
from bragg.analyze.causes.paths import below, named
from bragg.analyze.causes.text.program_text import FileText, call_name, names_read, names_set
from bragg.analyze.causes.text.text_calls import calls_at, fits, operands
from bragg.analyze.causes.work_finding import Work, work_or_host_findings
from bragg.analyze.engine import HostTime, Rule
from bragg.code.python_nodes import parts_of, walk
from bragg.model import Confidence, Finding

_WORK = Work(
    "growing-tensor",
    "a tensor that grows is copied whole for each part that is added",
    "make it once, as long as it gets, and write into it: buffer[:, :, n] = new; buffer[:, :, : n + 1] is a view of it",
    0.9,
    Confidence.HEURISTIC,
    with_host=True,
    least_share=0.1,
    is_launched=True,
)
_MOVED = replace(
    _WORK,
    what="a window of the last rows is copied whole to move it by what is new",
    change="leave rows where they are, and write over the oldest: buffer[step % n] = new; indices tell their order",
)
_REORDERED = replace(
    _WORK,
    what="caches are gathered whole to reorder them, though only their begin is filled (how much is not recorded)",
    change="reorder what is filled: cache[:, : n + 1] = cache[beams, : n + 1]; or leave rows where they are, and keep "
    "in a table which row each beam goes on from",
    saved=None,
)
_JOINS = ("cat", "concat", "concatenate", "hstack", "vstack")
_COPIES = re.compile(r"aten::(?:cat|stack|concat|concatenate|hstack|vstack|roll|clone)")
_GATHERS = re.compile(r"aten::(?:index_select|index)")
_FILLED = {"zeros", "empty", "full", "new_zeros", "new_empty", "new_full"}
# What a function is given, and gives back with more in it.
_KEPT = re.compile(r"\w*(?:cache|past|prev|memory|history|buffer|state)\w*", re.I)


def _find(evidence: Evidence) -> Iterator[Finding]:
    works = evidence.has_work if evidence.profile.measured("gpu_time") else evidence.callers.is_direct
    for work, operators, is_meant in _KINDS:
        copies = fits(evidence, named(evidence.profile, operators.fullmatch) & works, is_meant)
        yield from work_or_host_findings(evidence, below(evidence.profile, copies), work)


def _grows(file: FileText, statement: ast.stmt) -> bool:
    """Whether something is joined to what an earlier turn left: `past = torch.cat([past, new], 1)`."""
    parts = [each for each in _joined(statement) if not (isinstance(each, ast.Subscript) and _is_cut(each))]
    return any(_is_kept(file, statement, each) for each in parts) or _joins_list(file, statement)


def _joins_list(file: FileText, statement: ast.stmt) -> bool:
    """Whether a loop joins, in each turn, a list that its turns make longer."""
    lists = {call_name(each.args[0]) for each in calls_at(statement, "stack", *_JOINS) if each.args}
    loops = file.loops_of(statement)[-1:]
    inside = [each for loop in loops for each in walk(loop)]
    appends = (each.func for each in inside if isinstance(each, ast.Call) and call_name(each) == "append")
    longer = {call_name(each.value) for each in appends if isinstance(each, ast.Attribute)}
    set_again = {name for each in inside if isinstance(each, ast.stmt) for name in names_set(each)}
    return bool((lists & longer) - set_again - {""})


def _moves(file: FileText, statement: ast.stmt) -> bool:
    """Whether rows make room: `h = torch.cat([h[1:], new])`, `h = h.roll(-1)`, `h[:-1] = h[1:].clone()`."""
    moved = [each.value for each in _joined(statement) if isinstance(each, ast.Subscript) and _is_cut(each)]
    rolled = [each for call in calls_at(statement, "roll") for each in operands(call)]
    moved += [each for each in rolled if _is_written(file, each)]
    if any(_is_kept(file, statement, each) for each in moved):
        return True
    target = statement.targets[0] if isinstance(statement, ast.Assign) else None
    copied = [each for call in calls_at(statement, "clone") for each in operands(call)]
    parts = [each for each in (target, *copied) if isinstance(each, ast.Subscript) and _is_cut(each)]
    return len(parts) > 1 and parts[0] is target and ast.unparse(parts[0].value) == ast.unparse(parts[1].value)


def _reorders(file: FileText, statement: ast.stmt) -> bool:
    """Whether all rows that a cache has room for get another order: `cache = cache.index_select(0, beams)`."""
    gathered = [each for call in calls_at(statement, "index_select") for each in operands(call)]
    gathered += [each.value for each in parts_of(statement, ast.Subscript) if _takes_rows(each)]
    rows = [each for each in gathered if not isinstance(each, ast.Subscript) and _comes_back(file, statement, each)]
    made = {call_name(part) for each in rows for part in file.origins(each) if isinstance(part, ast.Call)}
    return bool(made & _FILLED) and any(_is_begin(file, each) for each in parts_of(file.tree, ast.Subscript))


def _takes_rows(part: ast.Subscript) -> bool:
    """Whether it is `x[rows]` or `x[:, rows]`, and all else is taken whole."""
    pieces = part.slice.elts if isinstance(part.slice, ast.Tuple) else [part.slice]
    whole = [each for each in pieces if isinstance(each, ast.Slice) and not (each.lower or each.upper)]
    names = [each for each in pieces if isinstance(each, ast.Name)]
    return isinstance(part.ctx, ast.Load) and len(names) == 1 and len(whole) + 1 == len(pieces)


def _comes_back(file: FileText, statement: ast.stmt, part: ast.expr) -> bool:
    """Whether what is computed of a value replaces it, here or where the function is called."""
    owner, function = _root(file, part), file.function_of(statement)
    if isinstance(statement, ast.Assign):
        return any(_root(file, each) == owner for each in statement.targets)
    if not isinstance(statement, ast.Return) or not isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return False
    given = {ast.unparse(each) for each in file.arguments(owner, function)}
    sets = [each for each in parts_of(file.tree, ast.Assign) if calls_at(each.value, function.name)]
    return bool(given & {ast.unparse(target) for each in sets for target in each.targets})


def _is_begin(file: FileText, part: ast.Subscript) -> bool:
    """Whether it is `cache[:, : n + 1]`: what is filled of a cache."""
    pieces = part.slice.elts if isinstance(part.slice, ast.Tuple) else [part.slice]
    ends = [each.upper for each in pieces if isinstance(each, ast.Slice) and each.lower is None and each.upper]
    return any(not isinstance(each, ast.Constant) for each in ends) and bool(_KEPT.fullmatch(_root(file, part)))


def _is_written(file: FileText, rows: ast.expr) -> bool:
    """Whether the function writes some of the rows: `rows[-1] = new`."""
    stored = parts_of(file.function_of(rows), ast.Subscript)
    return any(isinstance(each.ctx, ast.Store) and ast.unparse(each.value) == ast.unparse(rows) for each in stored)


def _joined(statement: ast.stmt) -> list[ast.expr]:
    """What a statement joins, of each call the parts."""
    lists = [each.args[0] for each in calls_at(statement, *_JOINS) if each.args]
    return [part for each in lists if isinstance(each, (ast.List, ast.Tuple)) for part in each.elts]


def _is_cut(part: ast.Subscript) -> bool:
    """Whether it leaves out what is at one end: `x[1:]`, `x[:, -n:]`."""
    pieces = part.slice.elts if isinstance(part.slice, ast.Tuple) else [part.slice]
    return any(isinstance(each, ast.Slice) and (each.lower or each.upper) and not each.step for each in pieces)


def _is_kept(file: FileText, statement: ast.stmt, part: ast.expr) -> bool:
    """Whether what a statement sets becomes, in the next turn, a part that it reads."""
    if not isinstance(statement, ast.Assign):
        return False
    text, owner = ast.unparse(part), _root(file, part)
    if any(ast.unparse(each) == text for each in statement.targets):
        return not isinstance(part, ast.Name) or _is_carried(file, statement, part.id)
    function = file.function_of(statement)
    inside = [each for each in walk(function) if isinstance(each, (ast.Assign, ast.Return)) and each is not statement]
    names = names_set(statement)
    for each in inside:  # present = (k, v)
        if isinstance(each, ast.Assign) and isinstance(each.value, ast.Tuple) and names_read(each.value) & names:
            names = names | names_set(each)
    return owner != "" and any(_keeps(file, each, owner, names) for each in inside)


def _keeps(file: FileText, statement: ast.Assign | ast.Return, owner: str, names: set[str]) -> bool:
    """Whether a statement stores variables where a part was read, or returns them to who gave it."""
    if statement.value is None or not names_read(statement.value) & names:
        return False
    if isinstance(statement, ast.Assign):
        return any(_root(file, each) == owner for each in statement.targets)
    given = {each.arg for each in parts_of(file.function_of(statement), ast.arg)}
    return isinstance(statement.value, ast.Tuple) and owner in given and bool(_KEPT.fullmatch(owner))


def _root(file: FileText, part: ast.expr) -> str:
    """The attribute or variable that elements are taken of: `self.past` of `self.past[0]`, `past` of `k, v = past`."""
    while isinstance(part, ast.Subscript):
        part = part.value
    if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load):
        made = file.assigned(part.id, file.function_of(part))
        if len(made) == 1 and isinstance(made[0], (ast.Name, ast.Attribute, ast.Subscript)):
            return _root(file, made[0])
    return ast.unparse(part) if isinstance(part, (ast.Name, ast.Attribute)) else ""


def _is_carried(file: FileText, statement: ast.stmt, name: str) -> bool:
    """Whether a variable is what the turn before left, of a loop that does not go through layers."""
    loops = file.loops_of(statement)
    others = [each for loop in loops[-1:] for each in parts_of(loop, ast.stmt) if each is not statement]
    is_set = any(name in names_set(each) for each in others if not hasattr(each, "body"))
    through_layers = any(isinstance(each, ast.Attribute) for loop in loops[-1:] for each in _iterated(loop))
    return bool(loops) and not is_set and not through_layers


def _iterated(loop: ast.stmt) -> Iterator[ast.AST]:
    yield from walk(loop.iter) if isinstance(loop, (ast.For, ast.AsyncFor)) else ()


_KINDS: tuple[tuple[Work, re.Pattern[str], Callable[[FileText, ast.stmt], bool]], ...] = (
    (_WORK, _COPIES, _grows),
    (_MOVED, _COPIES, _moves),
    (_REORDERED, _GATHERS, _reorders),
)
RULE = Rule(
    _find,
    "tensors that are copied whole to make them longer, to move their rows, or to reorder a cache",
    (WORK_TIME, OPERATORS, TEXT),
    (),
    _WORK.change,
    host_time=HostTime.CAUSE,
)
