"""Networks whose rows were repeated before, by the text of the program."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.causes.needs import GPU_TIME, OPERATORS, TEXT
from bragg.analyze.causes.paths import below, named
from bragg.analyze.causes.text.invariants import computed
from bragg.analyze.causes.text.program_text import FileText, call_name, names_read, names_set
from bragg.analyze.causes.text.repeated_values import is_copied, made_by, repeats_rows
from bragg.analyze.causes.text.text_calls import argument, calls_at, fits, is_layer, makers_of_called
from bragg.analyze.causes.work_finding import Work, line_findings, work_findings
from bragg.analyze.engine import HostTime, Rule
from bragg.code.python_nodes import parts_of, walk
from bragg.model import Confidence, Finding, FrameKind

_WORK = Work(
    "late-repeat",
    "a network computes rows that were repeated before, each as often as it was repeated",
    "compute each row once, and repeat what comes out: net(x).repeat_interleave(n, 0) in place of "
    "net(x.repeat_interleave(n, 0))",
    0.7,
    Confidence.HEURISTIC,
    with_host=True,
    least_share=0.1,
    is_launched=True,
)
_JOINED = replace(
    _WORK,
    what="a layer multiplies rows that are joined to a vector which is the same for many of them",
    change="split its weight, and multiply the vector once: layer_x(x) + layer_z(z)[:, None] in place of "
    "layer(torch.cat([x, z.expand(...)], -1))",
    saved=0.5,
    with_host=False,
)
_PAIRS = replace(
    _JOINED,
    what="a layer multiplies pairs of rows that are gathered of one tensor, as ends of edges",
    change="split its weight, and multiply each row once: a(x)[src] + b(x)[dst] in place of "
    "layer(torch.cat([x[src], x[dst]], -1))",
    saved=0.8,
)
_HEADS = Work(
    "late-repeat",
    "keys and values are copied for each query head of a group, before attention reads the copies",
    "scaled_dot_product_attention(q, k, v, enable_gqa=True), or the query heads of a group as rows of one query; if "
    "lengths change, attention must not plan anew for each (planning), or the copies hide behind that",
    1.0,
    Confidence.HEURISTIC,
    least_share=0.1,
    is_launched=True,
)
_ATTENTION = "scaled_dot_product_attention"
_PRODUCTS = re.compile(r"aten::(?:linear|addmm|mm)")
_CHANCE = re.compile("rand|normal_|uniform_|bernoulli|multinomial|dropout|exponential_")
_LINEAR = re.compile("Linear")
_JOINS = ("cat", "concat", "concatenate")


def _find(evidence: Evidence) -> Iterator[Finding]:
    profile, tree = evidence.profile, evidence.profile.tree
    hot = (tree.kind == FrameKind.PYTHON) & (tree.sum_up(evidence.gpu_ns) > 0)
    hot &= tree.sum_up(named(profile, _CHANCE.search).astype(np.int64)) == 0
    lines = [node for node in np.flatnonzero(hot).tolist() if (at := evidence.text.at(node)) and _is_late(*at)]
    yield from line_findings(evidence, lines, _WORK)
    products = named(profile, _PRODUCTS.fullmatch) & evidence.has_work
    for is_meant, work in ((_joins_copies, _JOINED), (of_pairs, _PAIRS)):
        yield from work_findings(evidence, below(profile, fits(evidence, products, is_meant)), work)
    copies = fits(evidence, named(profile, "aten::repeat_interleave".__eq__), _repeats_heads)
    for finding in work_findings(evidence, below(profile, copies), _HEADS):
        # Where the GPU waits for the host anyway, what the copies cost is not known before that is repaired.
        yield finding if finding.gain and finding.gain.wall_ns else replace(finding, gain=None)


def _repeats_heads(file: FileText, statement: ast.stmt) -> bool:
    """Whether a statement repeats keys or values, which attention in the same function reads."""
    value = computed(statement)
    if value is None or not calls_at(value, "repeat_interleave"):
        return False
    attends = calls_at(file.function_of(statement), _ATTENTION)
    given = [argument(call, name, at) for call in attends for name, at in (("key", 1), ("value", 2))]
    return any(names_read(each) & names_set(statement) or value in walk(each) for each in given if each is not None)


def _is_late(file: FileText, statement: ast.stmt) -> bool:
    """Whether a statement calls a network or a function of this file, with repeated rows alone."""
    calls = [each for each in parts_of(statement, ast.Call) if not hasattr(statement, "body")]
    return any(_is_own(file, each) and _is_of_repeated(file, each) for each in calls)


def _is_of_repeated(file: FileText, call: ast.Call) -> bool:
    values = [*call.args, *(each.value for each in call.keywords)]
    tensors = [each for each in values if not isinstance(each, ast.Constant)]
    return bool(tensors) and all(repeats_rows(file, each) for each in tensors)


def _is_own(file: FileText, call: ast.Call) -> bool:
    if call_name(call) in file.functions:
        return True
    return any(isinstance(each, ast.Call) and call_name(each)[:1].isupper() for each in makers_of_called(file, call))


def _joins_copies(file: FileText, statement: ast.stmt) -> bool:
    """Whether a statement gives a linear layer what is joined to a vector that is expanded to all rows."""
    return any(any(is_copied(file, part) for part in parts) for parts in _joined(file, statement))


def of_pairs(file: FileText, statement: ast.stmt) -> bool:
    """Whether a statement gives a linear layer rows that are gathered twice of one tensor."""
    return any(_gathers_twice(file, parts) for parts in _joined(file, statement))


def _gathers_twice(file: FileText, parts: list[ast.expr]) -> bool:
    made = (made_by(file, each) for each in parts)
    gathered = [ast.dump(each.value) for each in made if isinstance(each, ast.Subscript) and _is_index(each.slice)]
    return len(set(gathered)) < len(gathered)


def _is_index(index: ast.expr) -> bool:
    return isinstance(index, (ast.Name, ast.Attribute, ast.Subscript))


def _joined(file: FileText, statement: ast.stmt) -> Iterator[list[ast.expr]]:
    """What is joined for linear layers that a statement calls."""
    for each in walk(statement):
        if not isinstance(each, ast.Call) or len(each.args) != 1 or not is_layer(file, each, _LINEAR):
            continue
        made = made_by(file, each.args[0])
        parts = made.args[0] if isinstance(made, ast.Call) and call_name(made) in _JOINS and made.args else None
        if isinstance(parts, (ast.List, ast.Tuple)):
            yield parts.elts


RULE = Rule(
    _find,
    "networks and layers of rows that were repeated before",
    (GPU_TIME, OPERATORS, TEXT),
    (),
    _WORK.change,
    host_time=HostTime.CAUSE,
)
