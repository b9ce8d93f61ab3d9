"""Work of a loop that is the same in each turn, by the text of the program."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.causes.host_finding import moved
from bragg.analyze.causes.needs import GPU_TIME, OPERATORS, TEXT
from bragg.analyze.causes.paths import MODULE_CALLS, below, lines_above, named, place_of
from bragg.analyze.causes.recurring import recurs
from bragg.analyze.causes.text.invariants import Turns, computed
from bragg.analyze.causes.text.program_text import FileText, Function, Loop, call_name, names_read
from bragg.analyze.causes.text.text_calls import makers_of_called
from bragg.analyze.causes.work_finding import Work, work_findings
from bragg.analyze.engine import HostTime, Rule
from bragg.code.python_nodes import walk
from bragg.model import Confidence, Finding
from bragg.model.ids import NodeId
from bragg.model.kernels.names import operator_name
from bragg.model.table import BoolArray, FloatArray

_SAVED = 0.9
_WORK = Work(
    "loop-invariant",
    "a loop computes in each turn what its text says stays the same",
    "compute it once, before the loop, and hand it to what uses it",
    _SAVED,
    Confidence.HEURISTIC,
    with_host=True,
    least_share=0.1,
    is_launched=True,
)
_SOME = replace(
    _WORK,
    what="a line calls the same several times, and some of these calls compute in each turn what stays the same",
)
_SHAPED = replace(
    _WORK,
    what="each turn computes what its text says changes with shapes alone",
    change="compute it once for each shape, and keep it: a dictionary by shape, functools.cache",
)
_TOLD = re.compile(r"aten::(?:tril|triu|arange|linspace|logspace)_?")
_ALIKE = 1.25  # of the longest launches to the shortest: shapes have stayed the same
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


class _Begin(NamedTuple):
    """Where repeated work begins.

    Attributes:
        line: The node of its line.
        share: Of the calls there that lead to it, which stay the same; what each takes is not known.
        is_whole: Whether all that the line computes stays the same.
        of_shapes: Whether it does while shapes do.
    """

    line: NodeId
    share: float
    is_whole: bool
    of_shapes: bool = False


class _Step(NamedTuple):
    """A line of a call path: what it computes, which variables differ between turns there, and what it calls."""

    line: NodeId
    value: ast.expr
    changing: frozenset[str]
    callee: Function | None


@dataclass
class _Repeated:
    """What a loop repeats.

    Attributes:
        loop: Its node.
        nodes: Of the repeated work, by where it begins.
        repeated: Its weight.
        whole: Weight of all that the loop does.
        samples: Whether it is within another loop, and what it does depends on chance.
        hands_on: Whether its turns compute with what earlier ones left.
    """

    loop: NodeId
    nodes: dict[_Begin, list[int]] = field(default_factory=lambda: defaultdict(list))
    repeated: float = 0.0
    whole: float = 0.0
    samples: bool = False
    hands_on: bool = False

    @property
    def is_meant(self) -> bool:
        """Whether what it repeats is not all that it is for."""
        return self.samples or self.hands_on or self.repeated < _WHOLE * self.whole


_Begins = dict[_Begin, tuple[_Repeated, list[int]]]


def _find(evidence: Evidence) -> Iterator[Finding]:
    weight = evidence.gpu_ns + (0.0 if evidence.idle_ns is None else evidence.idle_ns)
    begins: _Begins = {}
    for each in (each for each in _loops(evidence, weight) if each.is_meant):
        for begin, nodes in each.nodes.items():
            if recurs(evidence, [begin.line]) and len(nodes) > len(begins.get(begin, (each, []))[1]):
                begins[begin] = each, nodes
    for chosen, work in (
        ({begin: at for begin, at in begins.items() if begin.share == 1 and not begin.of_shapes}, _WORK),
        ({begin: at for begin, at in begins.items() if begin.of_shapes}, _SHAPED),
        ({begin: at for begin, at in begins.items() if begin.share < 1}, _SOME),
    ):
        weights = {begin: float(weight[nodes].sum()) for begin, (_, nodes) in chosen.items()}
        if any(weights.values()):
            yield from _told(evidence, chosen, weights, work)


def _told(evidence: Evidence, begins: _Begins, weights: dict[_Begin, float], work: Work) -> Iterator[Finding]:
    share = sum(begin.share * each for begin, each in weights.items()) / sum(weights.values())
    work = replace(work, saved=_SAVED * share)
    for finding in work_findings(evidence, _with_launches(evidence, begins), work):
        heaviest = max(weights, key=lambda begin: weights[begin])
        loop = place_of(evidence.profile, begins[heaviest][0].loop)
        others = [place_of(evidence.profile, each.line) for each in begins if each != heaviest]
        yield replace(moved(finding, place_of(evidence.profile, heaviest.line), [loop, *others]), kernel="")


def _with_launches(evidence: Evidence, begins: _Begins) -> BoolArray:
    """Repeated work with the host's code that launches it."""
    chosen = np.zeros(len(evidence.gpu_ns), np.bool_)
    chosen[[node for _, nodes in begins.values() for node in nodes]] = True
    at = np.zeros(len(chosen), np.bool_)
    at[[each.line for each in begins if each.is_whole]] = True
    found: BoolArray = chosen | (below(evidence.profile, at) & evidence.host.launching)
    return found


def _loops(evidence: Evidence, weight: FloatArray) -> Iterable[_Repeated]:
    """The loops of the program with what they repeat."""
    found: dict[Loop, _Repeated] = {}
    known: dict[tuple[Loop, bool], Turns] = {}
    of_shapes: dict[tuple[Loop, bool], Turns] = {}
    alike = _alike(evidence)
    chance = below(evidence.profile, named(evidence.profile, _CHANCE.search))
    chains = _chains(evidence, weight)
    with_data = _loops_with_data(chains, weight)
    for node, chain in chains.items():
        is_outermost = True
        for depth, (line, at) in enumerate(chain):
            for loop in at[0].loops_of(at[1]) if at else ():
                key = loop, is_outermost and loop not in with_data
                if at and key not in known:
                    known[key], of_shapes[key] = Turns(at[0], *key), Turns(at[0], *key, shapes_stay=True)
                of_loop = found.setdefault(loop, _Repeated(line))
                of_loop.whole += float(weight[node])
                of_loop.samples |= not is_outermost and bool(chance[node])
                of_loop.hands_on |= known[key].hands_on
                begin, is_outermost = _begin(evidence, node, known[key], chain[depth:]), False
                if begin is None and alike[node]:
                    begin = _begin(evidence, node, of_shapes[key], chain[depth:])
                if begin is not None and not chance[node]:
                    of_loop.repeated += float(weight[node]) * begin.share
                    of_loop.nodes[begin].append(node)
    return found.values()


def _alike(evidence: Evidence) -> BoolArray:
    """Nodes with kernels whose launches all took about as long, as those with the same shapes do: [n_nodes].

    Not those of masks and tables, which rules of their own tell.
    """
    tree, line = evidence.profile.tree, evidence.callers.line
    short, long = (evidence.profile.durations.quantiles(q, len(tree.frames)) for q in (0.1, 0.9))
    differs, told = tree.sum_up((long > _ALIKE * short)[tree.frame].astype(np.int64)) > 0, np.zeros(len(tree), np.bool_)
    told[line[named(evidence.profile, _TOLD.fullmatch) & (line > 0)]] = True
    found: BoolArray = ~differs & ~below(evidence.profile, told)
    return found


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


def _begin(evidence: Evidence, node: int, turns: Turns, chain: _Chain) -> _Begin | None:
    """The outermost statement of a call path whose value, or a part of it, stays the same; None: all may change."""
    steps = list(_steps(turns, chain))
    for each in steps:
        if not turns.changes(each.value, each.changing):
            return _Begin(each.line, 1.0, is_whole=True, of_shapes=turns.shapes_stay)
    for each in steps:
        calls = _calls_to(evidence, node, turns, each)
        steady = [call for call in calls if not turns.changes(call, each.changing)]
        if steady and (not turns.shapes_stay or len(steady) == len(calls)):
            return _Begin(each.line, len(steady) / len(calls), is_whole=False, of_shapes=turns.shapes_stay)
    return None


def _steps(turns: Turns, chain: _Chain) -> Iterator[_Step]:
    """Lines of a call path, the outermost first, as far as their text is in the file of the loop."""
    changing = turns.changing
    for (line, at), (_, called) in zip(chain, [*chain[1:], (None, None)], strict=True):
        if at is None or at[0] is not turns.file:
            return
        value, callee = computed(at[1]), called[0].function_of(called[1]) if called else None
        # What the loop itself does with data is as good as new.
        is_data = turns.data_changes and line == chain[0][0]
        if value is not None and not is_data:
            yield _Step(line, value, changing, callee)
        if called is None or callee is None or called[0] is not turns.file:
            return
        changing = turns.changing_in(callee, at[1], changing)


def _calls_to(evidence: Evidence, node: int, turns: Turns, step: _Step) -> list[ast.AST]:
    """The calls and operators of a line that lead to a node; empty: which these are is not known."""
    parts = list(walk(step.value))
    if step.callee is not None:
        return [each for each in parts if isinstance(each, ast.Call) and step.callee in turns.called(each)]
    frames, path = evidence.profile.tree.frames, evidence.profile.tree.path(NodeId(node))
    inside = [int(evidence.profile.tree.frame[each]) for each in path[path.index(step.line) + 1 :]]
    if not inside:
        return []
    if MODULE_CALLS.search(frames.file[inside[0]]):
        return _layer_calls(turns.file, [each for each in parts if isinstance(each, ast.Call)])
    name = operator_name(frames.name[inside[0]]).removeprefix("aten::")
    return [each for each in parts if _called(each) == name]


def _layer_calls(file: FileText, calls: list[ast.Call]) -> list[ast.AST]:
    """Calls of layers, if all of them are of one kind and size."""
    made = {each: {ast.dump(layer) for layer in makers_of_called(file, each) if _is_layer(layer)} for each in calls}
    layers = [each for each in calls if made[each]]
    is_one_kind = len({frozenset(made[each]) for each in layers}) == 1
    return list[ast.AST](layers) if is_one_kind else []


def _is_layer(made: ast.expr) -> bool:
    return isinstance(made, ast.Call) and call_name(made)[:1].isupper()


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
