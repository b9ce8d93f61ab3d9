"""What each turn of a loop calls once: operators whose count is that of the turns."""

from __future__ import annotations

import ast
import builtins
import re
from collections import Counter

import numpy as np

from bragg.analyze.causes.text.program_text import FileText, Loop, ProgramText, call_name
from bragg.code.python_nodes import parts_of, walk
from bragg.model import CallTree, FrameKind
from bragg.model.ids import NodeId
from bragg.model.table import BoolArray, Int64Array

# Code of libraries that calls what it is about once, whose text is not in the profile.
_CALLS_ONCE = re.compile(
    r"[/\\]torch[/\\](?:nn[/\\]modules[/\\](?!container)\w+|nn[/\\]functional|utils[/\\]_contextlib|_tensor"
    r"|_dynamo[/\\].+|autograd[/\\](?:__init__|grad_mode))\.py$|[/\\]triton[/\\]runtime[/\\]\w+\.py$"
)
_CALLS_AGAIN = {"map", "filter", "starmap", "reduce", "sorted", "vmap", "submit", "tree_map"}
_NO_LINES = ("comp>", "<genexpr>", "<lambda>")
_LEAVES = (ast.Return, ast.Break, ast.Continue)
_LEAST_OF_ONE_MORE = 50
"""Turns of which one may lack a part: a loop that is left in the middle of its last one."""


def in_whole_turns(counts: Int64Array, turns: int) -> BoolArray:
    """Which counts are multiples of that of the turns, but for one turn: [n_nodes]."""
    each = np.maximum(np.round(counts / turns), 1)
    lacks = np.abs(counts - each * turns)
    found: BoolArray = (counts > 0) & (lacks <= (each if turns >= _LEAST_OF_ONE_MORE else 0))
    return found


def runs_once(tree: CallTree, text: ProgramText, loop: Loop, lines: Int64Array) -> BoolArray:
    """Operators, and launches without one, that each turn makes once by the text: [n_nodes].

    Args:
        tree: Call paths.
        text: Of the program.
        loop: The loop.
        lines: Nodes of its lines.
    """
    found = np.zeros(len(tree), np.bool_)
    waiting = [NodeId(node) for node in lines.tolist() if _is_straight(text, node, loop)]
    while waiting:
        above = waiting.pop()
        for child in map(NodeId, tree.children(above).tolist()):
            kind, at = tree.kind[child], text.at(child)
            if kind in (FrameKind.OPERATOR, FrameKind.KERNEL):
                found[child] = True
            elif kind == FrameKind.SCOPE:
                waiting.append(child)
            elif kind == FrameKind.PYTHON and _is_called_once(tree, text, above, child):
                goes_on = _is_straight(text, child) if at else _calls_once(tree, child)
                waiting += [child] * goes_on
    return found


def runs_in_no_loop(tree: CallTree, text: ProgramText, node: NodeId) -> bool:
    """Whether the text tells that a line above a loop calls what is below it once."""
    frame = tree.frame[node]
    if tree.kind[node] != FrameKind.PYTHON:
        return bool(tree.kind[node] == FrameKind.SCOPE)
    at = text.at(node)
    if at is None:
        return _calls_once(tree, node)
    file, statement = at
    return not (tree.frames.name[frame].endswith(_NO_LINES) or file.loops_of(statement))


def _calls_once(tree: CallTree, node: NodeId) -> bool:
    return _CALLS_ONCE.search(tree.frames.file[tree.frame[node]]) is not None


def _is_called_once(tree: CallTree, text: ProgramText, caller: NodeId, called: NodeId) -> bool:
    """Whether the one call of a line is that of a function, or the only one of its name: objects are called alike."""
    at = text.at(caller)
    name = tree.frames.name[tree.frame[called]]
    if at is None or name.endswith(_NO_LINES):
        return at is None
    calls = [each for each in _calls(at[1]) if not hasattr(builtins, each)]
    return len(calls) == 1 or name.rpartition(".")[2] in calls


def _is_straight(text: ProgramText, node: int, loop: Loop | None = None) -> bool:
    """Whether a line is reached once in each call of its function, or turn of the loop, and calls nothing twice."""
    at = text.at(node)
    return at is not None and _is_always_reached(*at, loop) and not _repeats(at[1])


def _is_always_reached(file: FileText, statement: ast.stmt, loop: Loop | None) -> bool:
    part, above = statement, file.parents[statement]
    while isinstance(above, (ast.With, ast.AsyncWith)):
        part, above = above, file.parents[above]
    owners = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Module)
    if isinstance(statement, (ast.If, Loop)) or not (above is loop if loop else isinstance(above, owners)):
        return False
    body: list[ast.stmt] = getattr(above, "body", [])
    before = body[: body.index(part)] if part in body else [part]
    return not any(isinstance(each, _LEAVES) for earlier in before for each in walk(earlier))


def _calls(statement: ast.stmt) -> list[str]:
    return [call_name(each) for each in parts_of(statement, ast.Call)]


def _repeats(statement: ast.stmt) -> bool:
    """Whether a statement calls something twice, or hands it to what does."""
    inside = list(walk(statement))
    if any(isinstance(each, (ast.comprehension, ast.IfExp)) for each in inside):
        return True
    calls = Counter(_calls(statement))
    computed = Counter(type(each.op) for each in inside if isinstance(each, (ast.BinOp, ast.UnaryOp)))
    return bool(_CALLS_AGAIN & calls.keys()) or any(n > 1 for n in (*calls.values(), *computed.values()))
