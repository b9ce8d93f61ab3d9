"""Gradients of JAX that are computed for each example of a batch, and then averaged."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.causes.host_finding import moved_to
from bragg.analyze.causes.needs import GPU_TIME, TEXT
from bragg.analyze.causes.paths import below, named
from bragg.analyze.causes.text.program_text import FileText, call_name
from bragg.analyze.causes.thresholds import MUCH_GPU
from bragg.analyze.causes.work_finding import Work, work_findings
from bragg.analyze.engine import HostTime, Rule
from bragg.code.python_nodes import parts_of
from bragg.grouping.hlo_names import BACKWARD
from bragg.model import Confidence, Finding, Place

_WORK = Work(
    "example-gradients",
    "jax.vmap computes gradients for each example, which are written, and then averaged",
    "the gradient of the mean: jax.value_and_grad(lambda p: jax.vmap(one, (None, 0, 0))(p, x, y).mean())",
    0.8,  # 70 % of a step of which 79 % was the backward pass of convolutions
    Confidence.HEURISTIC,
    is_launched=True,
)
_GRADIENTS = ("grad", "value_and_grad")


def _find(evidence: Evidence) -> Iterator[Finding]:
    profile = evidence.profile
    places = [
        Place(name, line)
        for name in profile.sources
        if (file := evidence.text.file(name)) is not None
        for line in _lines(file)
    ]
    if places:
        for finding in work_findings(evidence, below(profile, named(profile, BACKWARD[1].__eq__)), _WORK):
            yield moved_to(finding, places)


def _lines(file: FileText) -> Iterator[int]:
    for each in parts_of(file.tree, ast.Assign):
        made, target = each.value, each.targets[0]
        if isinstance(target, ast.Tuple):  # of `value_and_grad`
            target = target.elts[-1]
        if isinstance(made, ast.Call) and isinstance(target, ast.Name) and _is_of_examples(file, made.func):
            reads = [
                name
                for name in parts_of(file.function_of(each), ast.Name)
                if name.id == target.id and isinstance(name.ctx, ast.Load)
            ]
            if reads and all(_is_averaged(file.parents.get(name)) for name in reads):
                yield each.lineno


def _is_of_examples(file: FileText, function: ast.expr) -> bool:
    """Whether it is `jax.vmap(jax.grad(f), ...)`."""
    calls = [each for each in file.makers(function) if isinstance(each, ast.Call) and call_name(each) == "vmap"]
    inner = [made for each in calls if each.args for made in file.makers(each.args[0])]
    return any(isinstance(each, ast.Call) and call_name(each) in _GRADIENTS for each in inner)


def _is_averaged(above: ast.AST | None) -> bool:
    """Whether it is `jax.tree.map(lambda g: g.mean(0), gradients)`."""
    if not isinstance(above, ast.Call) or call_name(above) not in ("map", "tree_map") or not above.args:
        return False
    function = above.args[0]
    return isinstance(function, ast.Lambda) and call_name(function.body) in ("mean", "sum")


RULE = Rule(
    _find,
    "gradients of JAX for each example that are only averaged",
    (GPU_TIME, TEXT),
    (MUCH_GPU,),
    _WORK.change,
    host_time=HostTime.CAUSE,
)
