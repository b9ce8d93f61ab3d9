"""Sequences that grow in a loop, and that a network reads from their beginning in each turn."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import numpy as np

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.causes.host_work import WORK_TIME
from bragg.analyze.causes.needs import OPERATORS, TEXT
from bragg.analyze.causes.text.program_text import Loop, call_name
from bragg.analyze.causes.work_finding import Work, line_findings
from bragg.analyze.engine import HostTime, Rule
from bragg.code.python_nodes import parts_of, walk
from bragg.model import Confidence, Finding, FrameKind

_WORK = Work(
    "whole-prefix",
    "a loop that makes a sequence longer hands all of it to a network in each turn",
    "keep the keys and values of earlier positions (a KV cache), and compute the new position alone",
    0.8,
    Confidence.HEURISTIC,
    with_host=True,
    least_share=0.2,
    is_launched=True,
)
_JOINS = ("cat", "concat", "concatenate", "hstack")


def _find(evidence: Evidence) -> Iterator[Finding]:
    tree = evidence.profile.tree
    lines = [node for node in np.flatnonzero(tree.kind == FrameKind.PYTHON).tolist() if _reads_whole(evidence, node)]
    yield from line_findings(evidence, lines, _WORK)


def _reads_whole(evidence: Evidence, node: int) -> bool:
    """Whether a line hands a sequence that grows in its loop to a call of its own."""
    at = evidence.text.at(node)
    loops = at[0].loops_of(at[1]) if at else []
    if at is None or not loops:
        return False
    growing = {name for loop in loops for name in _growing(loop)}
    calls = (each for each in parts_of(at[1], ast.Call) if not _is_of_library(each))
    handed = {value.id for call in calls for value in _values(call) if isinstance(value, ast.Name)}
    return bool(handed & growing) and not _takes_part(at[1], growing)


def _growing(loop: Loop) -> Iterator[str]:
    """Variables that a loop sets to what they were, with more behind it: `x = torch.cat([x, new], 1)`."""
    for each in walk(loop):
        if isinstance(each, ast.Assign) and isinstance(each.value, ast.Call) and call_name(each.value) in _JOINS:
            parts, target = each.value.args[:1], each.targets[0]
            joined = parts[0].elts[:1] if parts and isinstance(parts[0], (ast.List, ast.Tuple)) else []
            if joined and isinstance(target, ast.Name) and ast.unparse(joined[0]) == target.id:
                yield target.id


def _is_of_library(call: ast.Call) -> bool:
    return ast.unparse(call.func).split(".")[0] in ("torch", "F", "nn", "np", "len", "print", "range")


def _values(call: ast.Call) -> list[ast.expr]:
    return [*call.args, *(each.value for each in call.keywords)]


def _takes_part(statement: ast.stmt, names: set[str]) -> bool:
    """Whether the call is of the tensor itself (`x.max()`), or keeps what it has computed."""
    owners = {call_name(each.value) for each in parts_of(statement, ast.Attribute)}
    return bool(owners & names) or any("cache" in word or "past" in word for word in _words(statement))


def _words(statement: ast.stmt) -> Iterator[str]:
    for each in walk(statement):
        if isinstance(each, ast.Name):
            yield each.id.lower()
        elif isinstance(each, ast.keyword) and each.arg:
            yield each.arg.lower()


RULE = Rule(
    _find,
    "sequences that a network reads again from their beginning as they grow",
    (WORK_TIME, OPERATORS, TEXT),
    (),
    _WORK.change,
    host_time=HostTime.CAUSE,
)
