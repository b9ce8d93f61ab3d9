"""Products over all positions of which a loss ignores some, by the text of the program."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator

import numpy as np

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.causes.host_finding import moved_to
from bragg.analyze.causes.needs import GPU_TIME, OPERATORS, TEXT
from bragg.analyze.causes.paths import below, named, place_of
from bragg.analyze.causes.text.program_text import FileText, call_name
from bragg.analyze.causes.text.text_calls import argument, is_layer, makers_of_called, statements_above
from bragg.analyze.causes.text.uses import use_of
from bragg.analyze.causes.work_finding import Work, work_findings
from bragg.analyze.engine import Rule
from bragg.code.python_nodes import parts_of, walk
from bragg.model import Confidence, Finding
from bragg.model.ids import NodeId

_WORK = Work(
    "ignored-targets",
    "products over all positions, and their loss, which ignores those whose target is ignore_index",
    "if these are most: take the others before a product: keep = target != ignored, loss(head(h[keep]), target[keep])",
    0.7,
    Confidence.HEURISTIC,
    least_share=0.1,
    is_launched=True,
)
_PRODUCTS = re.compile(r"aten::(?:linear|matmul|mm|bmm|addmm|einsum)")
_LOSS = "aten::cross_entropy_loss"
_LAYERS = re.compile("CrossEntropyLoss")
_SHAPES = ("view", "reshape", "flatten", "transpose", "permute", "contiguous", "float")
_CONSTANTS = (ast.Name, ast.Attribute, ast.Constant, ast.UnaryOp)
_FILLS = ("masked_fill", "masked_fill_", "where", "full_like")


def _find(evidence: Evidence) -> Iterator[Finding]:
    profile, line = evidence.profile, evidence.callers.line
    products = named(profile, _PRODUCTS.fullmatch) & (line > 0) & evidence.has_work
    losses = {node: of_it for node in np.flatnonzero(products).tolist() if (of_it := _losses_of(evidence, node))}
    chosen = np.zeros(len(line), np.bool_)
    chosen[[*losses, *(loss for of_it in losses.values() for loss in of_it)]] = True
    for finding in work_findings(evidence, below(profile, chosen), _WORK):
        lines = dict.fromkeys(int(line[node]) for of_it in (losses, *losses.values()) for node in of_it)
        yield moved_to(finding, [place_of(profile, NodeId(each)) for each in lines])


def _losses_of(evidence: Evidence, product: int) -> list[int]:
    """Losses that ignore some rows of what a product computes."""
    for line, file, statement in statements_above(evidence, product):
        use = use_of(file, statement, _is_loss, by_rows=True)
        if use == "part":
            beside = evidence.callers.function == evidence.callers.function_of_line[line]
            found: list[int] = np.flatnonzero(beside & named(evidence.profile, _LOSS.__eq__)).tolist()
            return found
        if use != "returned":
            return []
    return []


def _is_loss(file: FileText, part: ast.AST) -> bool:
    """Whether it is a cross entropy that ignores targets, maybe with other shapes and types in between."""
    while isinstance(part, (ast.Attribute, ast.Subscript)) or (
        isinstance(part, ast.Call) and call_name(part) in _SHAPES
    ):
        part = file.parents[part]
    target = argument(part, "target", 1) if isinstance(part, ast.Call) else None
    if not isinstance(part, ast.Call) or target is None or _is_chosen(file, target):
        return False
    made = makers_of_called(file, part) if is_layer(file, part, _LAYERS) else []
    losses = [part] if call_name(part) == "cross_entropy" else [each for each in made if isinstance(each, ast.Call)]
    ignored = {_written(file, argument(each, "ignore_index")) for each in losses} - {""}
    return bool(ignored) and any(_hides(file, each, ignored) for each in walk(file.tree))


def _is_chosen(file: FileText, target: ast.expr) -> bool:
    """Whether targets are taken by a mask, or by the numbers of their rows, already."""
    names = list(parts_of(target, ast.Name))
    made = [target, *(value for each in names for value in file.assigned(each.id, file.function_of(each)))]
    parts = [part for value in made for part in parts_of(value, ast.Subscript)]
    return any(
        isinstance(each, ast.Compare) or call_name(each) in ("nonzero", "where")
        for part in parts
        for maker in file.makers(part.slice)
        for each in walk(maker)
        if isinstance(each, (ast.Compare, ast.Call))
    )


def _written(file: FileText, value: ast.expr | None) -> str:
    """The constant that a value is, or its name if another file sets it; without a value PyTorch's own; else empty."""
    if value is None:
        return "-100"
    made = {ast.unparse(each) for each in file.makers(value)} if isinstance(value, _CONSTANTS) else set()
    return made.pop() if len(made) == 1 else ""


def _hides(file: FileText, part: ast.AST, ignored: Collection[str]) -> bool:
    """Whether targets are hidden by a mask, or from the beginning of a row to somewhere: padding is another matter."""
    if isinstance(part, ast.Call) and call_name(part) in _FILLS:
        return any(_written(file, each) in ignored for each in part.args) and not _is_of_padding(part)
    if not isinstance(part, ast.Assign) or _written(file, part.value) not in ignored:
        return False
    index = part.targets[0].slice if isinstance(part.targets[0], ast.Subscript) else None
    begins = [each for each in parts_of(index, ast.Slice) if each.upper] if index else []
    is_mask = isinstance(index, (ast.Name, ast.Compare, ast.UnaryOp, ast.BinOp, ast.Call))
    is_row = any(not isinstance(each.upper, (ast.Constant, ast.UnaryOp)) for each in begins)
    return (is_mask or is_row) and not _is_of_padding(part)


def _is_of_padding(part: ast.AST) -> bool:
    return "pad" in ast.unparse(part).lower()


RULE = Rule(
    _find, "products over all positions of which a loss ignores some", (GPU_TIME, OPERATORS, TEXT), (), _WORK.change
)
