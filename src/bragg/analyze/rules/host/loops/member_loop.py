"""Loops of Python that call a jitted function of JAX for one member after the other, while a GPU waits."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping

import numpy as np

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.causes.host_finding import Cause, moved
from bragg.analyze.causes.needs import IDLE, TEXT
from bragg.analyze.causes.paths import below, line_above, named, place_of
from bragg.analyze.causes.statements import statement_finding
from bragg.analyze.causes.text.program_text import names_read, names_set
from bragg.analyze.causes.text.text_calls import statements_above
from bragg.analyze.causes.thresholds import HOST_BOUND, IDLE_GPU, MANY_CALLED, RECURRING
from bragg.analyze.engine import HostTime, Rule
from bragg.code.python_nodes import children, parts_of, walk
from bragg.grouping.hlo_names import CALLS, COMPILE, COMPILED
from bragg.model import Confidence, Finding, FrameKind
from bragg.model.finding import percent_text
from bragg.model.ids import NodeId
from bragg.model.table import BoolArray

_NAMES = re.compile(r"[\w.]+")  # self.params
_Loop = ast.For | ast.ListComp | ast.GeneratorExp
_FRAMES = ("<listcomp>", "<genexpr>")  # of comprehensions before Python 3.12, of generators
_MOST_SHAPES = 2
_CHANGE = (
    "jax.vmap over members whose parameters are stacked (jax.tree.map(lambda *each: jnp.stack(each), *members)): one "
    "call for all of them"
)


def _find(evidence: Evidence) -> Iterator[Finding]:
    if evidence.idle_ns is None or not evidence.wall_ns or (evidence.busy or 1.0) > IDLE_GPU.value:
        return
    jitted = named(evidence.profile, lambda name: name.startswith(CALLS)) & (evidence.calls > 0)
    for node in np.flatnonzero(jitted)[np.argsort(-evidence.calls[jitted], kind="stable")].tolist():
        loop = _loop_over_members(evidence, node)
        if loop is None:
            continue
        nodes = _inside(evidence, node, loop) & evidence.host.launching
        waits_ns, turns = float(evidence.idle_ns[nodes].sum()), _turns(evidence, node)
        share = waits_ns / evidence.wall_ns
        if share < HOST_BOUND.value or turns < MANY_CALLED.value:
            continue
        name = evidence.profile.tree.frames.name[evidence.profile.tree.frame[node]]
        cause = Cause(
            "calls-per-member",
            f"a loop calls {name} for {turns:,.0f} members one after the other, which need nothing of each other: the "
            f"GPU waits for these calls {percent_text(share)} of the time",
            _CHANGE,
            evidence.gain(waits_ns * (1 - 1 / turns)),
            Confidence.HEURISTIC,
        )
        yield moved(
            statement_finding(evidence, nodes, evidence.idle_ns, cause), place_of(evidence.profile, NodeId(node))
        )
        return


def _loop_over_members(evidence: Evidence, node: int) -> _Loop | None:
    """The loop, or comprehension, that calls the program's own jitted function for each of its members in each step."""
    tree = evidence.profile.tree
    function = tree.frames.name[tree.frame[node]].partition("(")[2].rstrip(")")
    lines = [(file, statement) for _, file, statement in statements_above(evidence, node)]
    if not lines or not any(function in file.functions for file, _ in lines) or _has_shapes(evidence, function):
        return None
    file, statement = lines[0]
    loops = file.loops_of(statement)
    if comprehension := _comprehension(statement):
        return comprehension if any(file.loops_of(above) for file, above in lines) else None
    is_repeated = len(loops) > 1 or any(file.loops_of(above) for file, above in lines[1:])
    loop = loops[-1] if loops and is_repeated else None
    return loop if isinstance(loop, ast.For) and _is_of_member(loop, statement) else None


def _has_shapes(evidence: Evidence, function: str) -> bool:
    """Whether a function was compiled for inputs of many shapes, as those of layers: these cannot be stacked."""
    told = evidence.profile.run.attributes.get(f"{COMPILE}jit_{function}", {})
    return len({inputs for program, inputs in told.items() if program.startswith(COMPILED)}) > _MOST_SHAPES


def _comprehension(statement: ast.stmt) -> _Loop | None:
    """What calls with something of each of its elements, and keeps nothing for the next one."""
    for each in walk(statement):
        if isinstance(each, (ast.ListComp, ast.GeneratorExp)) and not names_set(each.elt):
            own = set[str]().union(*(names_set(generator.target) for generator in each.generators))
            calls = list(parts_of(each.elt, ast.Call))
            if any(names_read(argument) & own for call in calls for argument in call.args):
                return each
    return None


def _is_of_member(loop: ast.For, statement: ast.stmt) -> bool:
    """Whether a turn calls with something of its own member, and with nothing that another turn has made."""
    if not isinstance(statement, (ast.Assign, ast.Expr)):
        return False
    own, rows = names_set(loop.target), dict[str, str]()  # what each turn sets a row of, and that row
    made = set[str]()
    for target in _targets(statement):
        if isinstance(target, ast.Subscript) and names_read(target.slice) & own:
            rows[ast.unparse(target.value)] = ast.unparse(target)
        else:
            made |= _named_in(target)
    calls = list(parts_of(statement.value, ast.Call))
    given = [each for call in calls for each in (*call.args, *(keyword.value for keyword in call.keywords))]
    read = {name for each in given for name in _named_in(each, rows)}
    return any(names_read(each) & own for each in given) and not read & (_made_of(made, loop) | rows.keys())


def _targets(statement: ast.Assign | ast.AugAssign | ast.Expr) -> list[ast.expr]:
    """What a statement sets, or appends to."""
    if isinstance(statement, ast.Expr):
        call = statement.value
        return [call.func.value] if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) else []
    targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
    return [part for each in targets for part in (each.elts if isinstance(each, ast.Tuple) else [each])]


def _named_in(part: ast.AST, rows: Mapping[str, str] | None = None) -> set[str]:
    """Variables and attributes in a part of the program; of those that have a row of a turn, what is not that row."""
    text = ast.unparse(part)
    if isinstance(part, ast.Subscript) and text in (rows or {}).values():
        return set()
    if isinstance(part, ast.Name) or (isinstance(part, ast.Attribute) and _NAMES.fullmatch(text)):
        return {text}
    inside = [_named_in(each, rows) for each in children(part) if isinstance(each, (ast.expr, ast.keyword))]
    return set[str]().union(*inside)


def _made_of(names: set[str], loop: ast.For) -> set[str]:
    """These variables and attributes, and what a loop makes of them."""
    statements = [each for each in walk(loop) if isinstance(each, (ast.Assign, ast.AugAssign, ast.Expr))]
    found = set(names)
    for _ in statements:
        for each in statements:
            if _named_in(each.value) & found:
                found |= {name for target in _targets(each) for name in _named_in(target)}
    return found


def _inside(evidence: Evidence, node: int, loop: _Loop) -> BoolArray:
    """Lines of a loop, in the calls of the function that it is in, with all below: [n_nodes]."""
    tree = evidence.profile.tree
    frames, line = tree.frames, line_above(evidence.profile, node)
    row = int(tree.frame[line or 0])
    in_loop = (frames.line >= loop.lineno) & (frames.line <= (loop.end_lineno or loop.lineno))
    in_loop &= np.array([file == frames.file[row] for file in frames.file], np.bool_) & (
        frames.kind == FrameKind.PYTHON
    )
    return below(evidence.profile, in_loop[tree.frame])


def _turns(evidence: Evidence, node: int) -> float:
    """How often the loop calls for each call of its function, as what that calls least tells; 1: not known."""
    tree = evidence.profile.tree
    line = line_above(evidence.profile, node)
    while line and tree.frames.name[tree.frame[line]] in _FRAMES:
        line = int(tree.parent[line])
    function = below(evidence.profile, np.arange(len(tree)) == tree.parent[line or 0])
    counts = evidence.calls[function & named(evidence.profile, lambda name: name.startswith(CALLS))]
    once = float(counts[counts >= RECURRING.value].min(initial=np.inf))
    return round(float(evidence.calls[node]) / once) or 1


RULE = Rule(
    _find,
    "loops that call a jitted function for one member after the other",
    (IDLE, TEXT),
    (HOST_BOUND, IDLE_GPU, MANY_CALLED, RECURRING),
    _CHANGE,
    host_time=HostTime.CAUSE,
)
