"""Work of a loop that is the same in each turn, by the text of the program."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.causes.host_finding import moved
from bragg.analyze.causes.invariants import Turns, computed
from bragg.analyze.causes.needs import GPU_TIME, OPERATORS, TEXT
from bragg.analyze.causes.paths import below, lines_above, named, place_of
from bragg.analyze.causes.program_text import FileText, Loop, call_name, names_read
from bragg.analyze.causes.recurring import recurs
from bragg.analyze.causes.work_finding import Work, work_findings
from bragg.analyze.engine import HostTime, Rule
from bragg.model import Confidence, Finding
from bragg.model.ids import NodeId
from bragg.model.kernels.names import operator_name
from bragg.model.table import BoolArray, FloatArray

__all__ = ["RULE"]

_WORK = Work(
    "loop-invariant",
    "a loop computes in each turn what its text says stays the same",
    "compute it once, before the loop, and hand it to what uses it",
    0.9,
    Confidence.HEURISTIC,
    with_host=True,
    least_share=0.1,
    is_launched=True,
)
_CHANCE = re.compile("rand|normal_|uniform_|bernoulli|multinomial|dropout|exponential_")
_WHOLE = 0.9  # of a loop's work: one that repeats it all stands for a loop over data, as benchmarks do
_DATA = 0.2  # of a loop's work, with what is new in each turn
# Operators whose names the text does not say.
_WRITTEN: dict[type[ast.AST], str] = {
    ast.Mult: "mul",
    ast.Div: "div",
    ast.Add: "add",
    ast.Sub: "sub",
    ast.Pow: "pow",
    ast.MatMult: "matmul",
    ast.USub: "neg",
    ast.BitAnd: "__and__",
    ast.BitOr: "__or__",
}
_CASTS = ("float", "half", "bfloat16", "double", "long", "int", "bool", "type", "cuda", "cpu")
_N_NODES = 400  # the heaviest hold nearly all of the work


_Chain = list[tuple[NodeId, tuple[FileText, ast.stmt] | None]]


@dataclass
class _Repeated:
    """What a loop repeats.

    Attributes:
        loop: Its node.
        nodes: Of the repeated work, by the statement that begins it.
        parts: Statements of which only a part stays the same.
        repeated: Its weight.
        whole: Weight of all that the loop does.
        samples: Whether it is within another loop, and what it does depends on chance.
    """

    loop: NodeId
    nodes: dict[NodeId, list[int]] = field(default_factory=lambda: defaultdict(list))
    parts: set[NodeId] = field(default_factory=set)
    repeated: float = 0.0
    whole: float = 0.0
    samples: bool = False

    @property
    def is_meant(self) -> bool:
        """Whether what it repeats is not all that it is for."""
        return self.samples or self.repeated < _WHOLE * self.whole


_Statements = dict[NodeId, tuple[_Repeated, list[int]]]


def _find(evidence: Evidence) -> Iterator[Finding]:
    weight = evidence.gpu_ns + (0.0 if evidence.idle_ns is None else evidence.idle_ns)
    parts = [each for each in _loops(evidence, weight) if each.is_meant]
    statements: _Statements = {}
    for each in parts:
        for statement, nodes in each.nodes.items():
            if recurs(evidence, [statement]) and len(nodes) > len(statements.get(statement, (each, []))[1]):
                statements[statement] = each, nodes
    chosen = np.zeros(len(weight), np.bool_)
    chosen[[node for _, nodes in statements.values() for node in nodes]] = True
    for finding in work_findings(evidence, _with_launches(evidence, chosen, statements), _WORK):
        heaviest = max(statements, key=lambda line: float(weight[statements[line][1]].sum()))
        loop = place_of(evidence.profile, statements[heaviest][0].loop)
        others = [place_of(evidence.profile, each) for each in statements if each != heaviest]
        yield replace(moved(finding, place_of(evidence.profile, heaviest), [loop, *others]), kernel="")


def _with_launches(evidence: Evidence, chosen: BoolArray, statements: _Statements) -> BoolArray:
    """Repeated work with the host's code that launches it."""
    at = np.zeros(len(chosen), np.bool_)
    at[[each for each, (loop, _) in statements.items() if each not in loop.parts]] = True
    found: BoolArray = chosen | (below(evidence.profile, at) & evidence.host.launching)
    return found


def _loops(evidence: Evidence, weight: FloatArray) -> Iterable[_Repeated]:
    """The loops of the program with what they repeat."""
    found: dict[Loop, _Repeated] = {}
    known: dict[tuple[Loop, bool], Turns] = {}
    chance = below(evidence.profile, named(evidence.profile, _CHANCE.search))
    chains = _chains(evidence, weight)
    with_data = _loops_with_data(chains, weight)
    for node, chain in chains.items():
        is_outermost = True
        for depth, (line, at) in enumerate(chain):
            for loop in at[0].loops_of(at[1]) if at else ():
                key = loop, is_outermost and loop not in with_data
                if at and key not in known:
                    known[key] = Turns(at[0], *key)
                of_loop = found.setdefault(loop, _Repeated(line))
                of_loop.whole += float(weight[node])
                of_loop.samples |= not is_outermost and bool(chance[node])
                begins, is_outermost = _begins(known[key], chain[depth:]), False
                if begins is None and _is_steady_part(evidence, node, known[key], chain[depth:]):
                    begins = chain[-1][0]
                    of_loop.parts.add(begins)
                if begins is not None and not chance[node]:
                    of_loop.repeated += float(weight[node])
                    of_loop.nodes[begins].append(node)
    return found.values()


def _chains(evidence: Evidence, weight: FloatArray) -> dict[int, _Chain]:
    """The heaviest nodes, each with the lines of the program above it, the outermost first, and their statements."""
    chosen = np.flatnonzero((weight > 0) & ~evidence.in_graph)
    heaviest = chosen[np.argsort(-weight[chosen], kind="stable")][:_N_NODES].tolist()
    return {
        node: [(line, evidence.text.at(line)) for line in lines_above(evidence.profile, NodeId(node))]
        for node in heaviest
    }


def _loops_with_data(chains: dict[int, _Chain], weight: FloatArray) -> set[Loop]:
    """Loops that go on from their last turn, or that do a good part of their work with new data.

    What an outermost loop does else with the same data stands for a loop over data, as in programs that are measured.
    """
    whole: dict[Loop, float] = defaultdict(float)
    of_data: dict[Loop, float] = defaultdict(float)
    known: dict[Loop, Turns] = {}
    for node, chain in chains.items():
        for _, at in chain:
            for loop in at[0].loops_of(at[1]) if at else ():
                turns = known.setdefault(loop, Turns(at[0], loop)) if at else known[loop]
                value = computed(at[1]) if at and not isinstance(at[1], ast.Expr) else None
                whole[loop] += float(weight[node])
                is_data = turns.goes_on or (value is not None and names_read(value) & turns.fresh)
                of_data[loop] += float(weight[node]) if is_data else 0.0
    return {loop for loop in whole if of_data[loop] >= _DATA * whole[loop]}


def _begins(turns: Turns, chain: _Chain) -> NodeId | None:
    """The outermost statement of a call path whose value stays the same; None: all of them may change."""
    for line, value, changing in _values(turns, chain):
        if not turns.changes(value, changing):
            return line
    return None


def _values(turns: Turns, chain: _Chain) -> Iterator[tuple[NodeId, ast.expr, frozenset[str]]]:
    """What statements of a call path compute, the outermost first, and the variables that differ there."""
    changing = turns.changing
    for (line, at), (_, called) in zip(chain, [*chain[1:], (None, None)], strict=True):
        if at is None or at[0] is not turns.file:
            return
        value = computed(at[1])
        # What the loop itself does with data is as good as new.
        is_data = turns.data_changes and line == chain[0][0]
        if value is not None and not is_data:
            yield line, value, changing
        if called is None or called[0] is not turns.file:
            return
        changing = turns.changing_in(called[0].function_of(called[1]), at[1], changing)


def _is_steady_part(evidence: Evidence, node: int, turns: Turns, chain: _Chain) -> bool:
    """Whether a node is of a call that its line makes with what stays the same, beside others."""
    tree, line = evidence.profile.tree, chain[-1][0]
    path = tree.path(NodeId(node))
    below_line = path[path.index(line) + 1 :][:1]
    name = "".join(operator_name(tree.frames.name[tree.frame[each]]).removeprefix("aten::") for each in below_line)
    for each, value, changing in _values(turns, chain):
        if each == line:
            parts = [part for part in ast.walk(value) if name and _called(part) == name]
            return bool(parts) and not any(turns.changes(part, changing) for part in parts)
    return False


def _called(part: ast.AST) -> str:
    """The operator of PyTorch, or the function, that an expression calls; empty: it calls none."""
    if isinstance(part, (ast.BinOp, ast.UnaryOp)):
        return _WRITTEN.get(type(part.op), "")
    name = call_name(part) if isinstance(part, ast.Call) else ""
    return "to" if name in _CASTS else name


RULE = Rule(
    _find,
    "work that is the same in each turn of a loop",
    (GPU_TIME, OPERATORS, TEXT),
    (),
    _WORK.change,
    host_time=HostTime.CAUSE,
)
