"""Mixtures whose experts all compute all rows, though each row uses few of them, by the text of the program."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.causes.needs import GPU_TIME, OPERATORS, TEXT
from bragg.analyze.causes.text.program_text import FileText, Loop, call_name, names_read, names_set
from bragg.analyze.causes.text.text_calls import calls_at
from bragg.analyze.causes.text.uses import use_of
from bragg.analyze.causes.work_finding import Work, line_findings
from bragg.analyze.engine import Rule
from bragg.code.python_nodes import parts_of, walk
from bragg.model import Confidence, Finding, FrameKind

_WORK = Work(
    "all-experts",
    "each expert computes all rows, and weights that are mostly zero choose among the results",
    "give each expert its rows alone: sort rows by expert, and multiply in groups; or, which waits for the GPU once an "
    "expert, rows = weights[:, e].nonzero()[:, 0]; out.index_add_(0, rows, expert(x[rows]))",
    # The host waits for each expert's rows: on an H200 steps with 2 of 8 experts for each of 16,384 rows took 17.1 ms
    # instead of 18.6, though the GPU's work fell to 6.2 ms.
    None,
    Confidence.HEURISTIC,
    least_share=0.2,
    is_launched=True,
)
_BRANCHES = replace(
    _WORK,
    what="two networks compute all rows, and torch.where takes each row of one of them",
    change="give each network its rows alone: out = other(x); out[mask] = net(x[mask]), if a mask leaves few",
    saved=0.5,
)
_HEADS = replace(
    _WORK,
    what="all heads compute all rows, and each row takes the result of one",
    change="keep the weights of the heads in one tensor, and multiply each row with its own: "
    "torch.bmm(weight[index], x[:, :, None]); or give each head its rows alone",
)


def _find(evidence: Evidence) -> Iterator[Finding]:
    tree = evidence.profile.tree
    works = tree.sum_up(evidence.gpu_ns)
    lines = np.flatnonzero((tree.kind == FrameKind.PYTHON) & (works > 0)).tolist()
    for is_meant, work in ((_mixes, _WORK), (_is_branch, _BRANCHES), (_is_of_heads, _HEADS)):
        found = [node for node in lines if (at := evidence.text.at(node)) and is_meant(*at)]
        yield from line_findings(evidence, found, work)


def _mixes(file: FileText, statement: ast.stmt) -> bool:
    """Whether a loop over networks calls each with the same rows, where few of them count: by topk, or `kind == e`."""
    called = [loop for loop in file.loops_of(statement) if _calls_each(statement, loop)]
    chooses = bool(called) and _has_topk(file.function_of(statement))
    return chooses or any(_masks(each) or _is_routed(file, each) for each in called)


def _is_routed(file: FileText, loop: Loop) -> bool:
    """Whether a loop takes its number's part of what a function, or a module of this file, makes by topk."""
    numbers = names_set(loop.target) if isinstance(loop, ast.For) else set()
    parts = [each for each in parts_of(loop, ast.Subscript) if names_read(each.slice) & numbers]
    makers = [made for each in parts for made in file.makers(each.value)]
    modules = {call_name(made) for each in makers if isinstance(each, ast.Call) for made in file.makers(each.func)}
    classes = [file.classes[each] for each in sorted(modules & file.classes.keys())]
    return any(map(_has_topk, classes)) or any(_follows_topk(file, each) for each in makers)


def _follows_topk(file: FileText, value: ast.expr) -> bool:
    """Whether a function computes a value from its own topk."""
    function = file.function_of(value)
    return any(_is_topk(part) and file.function_of(part) is function for part in file.origins(value))


def _has_topk(part: ast.AST) -> bool:
    return any(map(_is_topk, walk(part)))


def _is_topk(part: ast.AST) -> bool:
    return isinstance(part, ast.Call) and call_name(part) == "topk"


def _masks(loop: Loop) -> bool:
    """Whether a loop compares its number with what rows say."""
    numbers = names_set(loop.target) if isinstance(loop, ast.For) else set()
    return any(
        isinstance(each, ast.Compare) and isinstance(each.ops[0], ast.Eq) and bool(names_read(each) & numbers)
        for each in walk(loop)
    )


def _is_branch(file: FileText, statement: ast.stmt) -> bool:
    """Whether a statement calls a network for `torch.where(mask, self.a(x), self.b(x))`, or for a variable in it."""
    if not any(_is_network(file, each) for each in walk(statement)):
        return False
    direct = any(_chooses(file, each) for each in calls_at(statement, "where"))
    return direct or use_of(file, statement, _chooses) == "part"


def _chooses(file: FileText, value: ast.AST) -> bool:
    """Whether it is a `torch.where` between the results of two networks."""
    if not isinstance(value, ast.Call) or call_name(value) != "where" or len(value.args) != 3:
        return False
    return all(any(_is_network(file, made) for made in file.makers(each)) for each in value.args[1:])


def _is_network(file: FileText, value: ast.AST) -> bool:
    """Whether it calls a module that an object holds."""
    is_own = isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute)
    made = file.attributes.get(call_name(value), []) if is_own and isinstance(value, ast.Call) else []
    return any(isinstance(each, ast.Call) for each in made)


def _is_of_heads(file: FileText, statement: ast.stmt) -> bool:
    """Whether a statement puts results of all heads together, of which each row takes one."""
    lists = [each.args[0] for each in calls_at(statement, "stack") if each.args]
    return any(map(_calls_heads, lists)) and use_of(file, statement, _takes_own) == "part"


def _calls_heads(results: ast.expr) -> bool:
    """Whether it is `[head(x) for head in self.heads]`."""
    if not isinstance(results, (ast.ListComp, ast.GeneratorExp)) or not isinstance(results.elt, ast.Call):
        return False
    through = results.generators[0]
    return call_name(results.elt) in names_set(through.target) and isinstance(through.iter, (ast.Attribute, ast.Name))


def _takes_own(file: FileText, value: ast.AST) -> bool:
    """Whether each row takes a part by its own number: `x[torch.arange(n), index]`, `x.gather(1, index)`."""
    if isinstance(value, ast.Subscript) and isinstance(value.slice, ast.Tuple):
        first = file.makers(value.slice.elts[0])
        return any(isinstance(each, ast.Call) and call_name(each) == "arange" for each in first)
    return isinstance(value, (ast.Call, ast.Attribute)) and call_name(value) in ("gather", "take_along_dim")


def _calls_each(statement: ast.stmt, loop: Loop) -> bool:
    set_by_loop = names_set(loop.target) if isinstance(loop, ast.For) else set()
    return any(
        isinstance(each, ast.Call)
        and isinstance(each.func, ast.Name)
        and each.func.id in set_by_loop
        and bool(each.args)
        and isinstance(each.args[0], ast.Name)
        and not names_read(each.args[0]) & names_set(loop)
        for each in walk(statement)
    )


RULE = Rule(_find, "mixtures whose experts all compute all rows", (GPU_TIME, OPERATORS, TEXT), (), _WORK.change)
