"""Recurrences whose loop does step by step what needs no earlier step, by the text of the program."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import replace

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.causes.needs import GPU_TIME, OPERATORS, TEXT
from bragg.analyze.causes.paths import below, named
from bragg.analyze.causes.text.invariants import Turns
from bragg.analyze.causes.text.program_text import FileText, names_read, names_set
from bragg.analyze.causes.text.text_calls import fits, is_layer
from bragg.analyze.causes.work_finding import Work, work_findings
from bragg.analyze.engine import HostTime, Rule
from bragg.code.python_nodes import parts_of, walk
from bragg.model import Confidence, Finding

_PROJECTED = Work(
    "known-inputs",
    "a recurrence multiplies its inputs with a weight step by step, though they need no earlier step",
    "one product for all steps before the loop: u = layer(x); the loop reads u[t]",
    0.7,
    Confidence.HEURISTIC,
    with_host=True,
    least_share=0.1,
    is_launched=True,
)
_STEPPED = replace(
    _PROJECTED,
    what="a recurrent layer is called for each step of a sequence that is known before",
    change="call it once with the whole sequence: out, state = rnn(x, state); nn.LSTM, nn.GRU in place of cells",
    saved=0.8,
)
_PRODUCTS = re.compile(r"aten::(?:linear|addmm|matmul|mm)")
_CELLS = re.compile(r"(?:LSTM|GRU|RNN)(?:Cell)?")
_VIEWS = ("unsqueeze", "squeeze", "view", "reshape", "to", "float", "contiguous", "flatten")


def _find(evidence: Evidence) -> Iterator[Finding]:
    products = named(evidence.profile, _PRODUCTS.fullmatch) & evidence.has_work
    for operators, is_meant, work in (
        (products, _projects, _PROJECTED),
        (evidence.has_work, _steps, _STEPPED),
    ):
        chosen = fits(evidence, operators, is_meant)
        yield from work_findings(evidence, below(evidence.profile, chosen), work)


def _projects(file: FileText, statement: ast.stmt) -> bool:
    """Whether a statement of a recurrence gives each step's input to a linear layer, and its state to none."""
    loop = _loop(file, statement)
    layers = [each for each in _calls(statement) if each.args and is_layer(file, each, re.compile("Linear"))]
    if loop is None or not layers or not all(_is_input(loop, each.args[0]) for each in layers):
        return False
    state = Turns(file, loop).carried
    return any(_multiplies(file, each, state) for each in walk(loop))


def _multiplies(file: FileText, part: ast.AST, state: frozenset[str]) -> bool:
    """Whether a state that goes on to the next step is multiplied with a weight."""
    if isinstance(part, ast.BinOp) and isinstance(part.op, ast.MatMult):
        return bool(names_read(part) & state)
    if not isinstance(part, ast.Call) or not is_layer(file, part, re.compile("Linear|LSTMCell|GRUCell|RNNCell")):
        return False
    return any(names_read(each) & state for each in part.args)


def _steps(file: FileText, statement: ast.stmt) -> bool:
    """Whether a statement gives a recurrent layer each step's input with the state that the step before has left."""
    loop = _loop(file, statement)
    call = statement.value if isinstance(statement, ast.Assign) else None
    if loop is None or not isinstance(call, ast.Call) or not call.args or not is_layer(file, call, _CELLS):
        return False
    state = {name for each in call.args[1:] for name in names_read(each)}
    sets = [each for each in parts_of(loop, ast.stmt) if names_set(each) & state]
    inside = [each for each in sets if each not in (loop, statement)]
    return _is_input(loop, call.args[0]) and not inside and bool(state) and state <= names_set(statement)


def _loop(file: FileText, statement: ast.stmt) -> ast.For | None:
    """The innermost loop, if it trains nothing."""
    loops = file.loops_of(statement)
    loop = loops[-1] if loops else None
    return loop if isinstance(loop, ast.For) and not Turns(file, loop).trains else None


def _calls(statement: ast.stmt) -> list[ast.Call]:
    return list(parts_of(statement, ast.Call))


def _is_input(loop: ast.For, value: ast.expr) -> bool:
    """Whether it is an element that the loop takes of what it does not change: `x[:, t]`, or `x` of `for x in xs`."""
    while isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr in _VIEWS:
        value = value.func.value
    numbers = names_set(loop.target)
    if isinstance(value, ast.Name):
        return value.id in numbers
    if not isinstance(value, ast.Subscript) or not names_read(value.slice) & numbers:
        return False
    changed = {name for each in loop.body for name in names_set(each)} | {
        name
        for each in parts_of(loop, ast.Subscript)
        if isinstance(each.ctx, ast.Store)
        for name in names_read(each.value)
    }
    return not names_read(value) & changed - numbers


RULE = Rule(
    _find,
    "recurrences that do step by step what needs no earlier step",
    (GPU_TIME, OPERATORS, TEXT),
    (),
    "one product for all steps before the loop; one call of nn.LSTM, nn.GRU for a whole sequence",
    host_time=HostTime.CAUSE,
)
