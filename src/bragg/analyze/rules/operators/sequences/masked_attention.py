"""Attention that is given a mask, which it reads, and whose hidden part it computes."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.causes.needs import GPU_TIME, OPERATORS
from bragg.analyze.causes.paths import below, children, named
from bragg.analyze.causes.text.program_text import FileText, call_name, is_raised, names_read
from bragg.analyze.causes.text.text_calls import argument, calls_at, fits, operands, statements_above
from bragg.analyze.causes.work_finding import Work, work_findings
from bragg.analyze.engine import Rule
from bragg.code.python_nodes import walk
from bragg.model import Confidence, Finding

_WORK = Work(
    "masked-attention",
    "attention is given a mask of bools: it is written out for each call, and tiles that it hides are computed",
    "is_causal=True instead of a causal mask; pad a batch to its longest sequence, not to the most that the model "
    "takes, or use nested tensors; flex_attention for other masks",
    0.5,
    Confidence.HEURISTIC,
    least_share=0.1,
    is_launched=True,
)
_CAUSAL = replace(
    _WORK,
    what="attention is given a causal mask as a tensor, which it reads; tiles that it hides are computed",
    change="is_causal=True of scaled_dot_product_attention, without a mask: flash attention leaves out what it hides",
    confidence=Confidence.LIKELY,
)
_BANDED = replace(
    _WORK,
    what="attention computes all pairs of positions, of which a mask leaves those near to each other (how many is not "
    "recorded)",
    change="cut keys and values into blocks, and let each block attend to its neighbours alone; flex_attention with a "
    "window leaves out tiles that its mask hides",
    saved=None,
)
_SCORES = re.compile(r"aten::(?:matmul|bmm|baddbmm|einsum|_?softmax|masked_fill|where|scaled_dot_product_attention)")
_ATTENTION = "aten::scaled_dot_product_attention"
_CUTS = re.compile(r"aten::(?:triu|tril)_?")  # masks that are made in the same function have a rule of their own
_MASKS = ("attn_mask", "mask", "src_mask", "tgt_mask", "attention_mask", "causal_mask")
_MAKES_CAUSAL = {"triu", "tril", "triu_", "tril_", "generate_square_subsequent_mask"}
_POSITION = 3  # of the mask among the arguments of attention


def _find(evidence: Evidence) -> Iterator[Finding]:
    profile, function = evidence.profile, evidence.callers.function
    attends = named(profile, _ATTENTION.__eq__) & evidence.has_work
    causal = np.zeros(len(function), np.bool_)
    causal[[node for node in np.flatnonzero(attends).tolist() if _is_causal(evidence, node)]] = True
    masked = np.zeros(len(function), np.bool_)
    masked[profile.tree.parent[children(profile, _ATTENTION, "aten::where") & evidence.has_work]] = True
    cuts = np.isin(function, function[named(profile, _CUTS.fullmatch) & (function >= 0)])
    banded = fits(evidence, named(profile, _SCORES.fullmatch) & evidence.has_work, _is_banded)
    yield from work_findings(evidence, below(profile, causal & ~cuts), _CAUSAL)
    yield from work_findings(evidence, below(profile, masked & ~causal & ~cuts & ~banded), _WORK)
    yield from work_findings(evidence, below(profile, banded), _BANDED)


def _is_banded(file: FileText, statement: ast.stmt) -> bool:
    """Whether the function of a statement is attention, and masks pairs by how far these are apart."""
    function = file.function_of(statement)
    if not calls_at(function, "softmax", "scaled_dot_product_attention") or calls_at(function, "unfold"):
        return False
    calls = calls_at(function, "masked_fill", "masked_fill_", "where", "scaled_dot_product_attention")
    values = [value for call in calls for value in (*call.args, *(each.value for each in call.keywords))]
    return any(_is_window(file, part) for value in values for part in file.origins(value))


def _is_window(file: FileText, part: ast.AST) -> bool:
    """Whether it is `(i[:, None] - i).abs() > window`, of positions that are not counted by the window itself."""
    if not isinstance(part, ast.Compare) or not isinstance(part.ops[0], (ast.Gt, ast.GtE, ast.Lt, ast.LtE)):
        return False
    distances = [each for each in file.makers(part.left) if isinstance(each, ast.Call) and call_name(each) == "abs"]
    gaps = [gap for each in distances for of in operands(each) for gap in file.makers(of)]
    pairs = [each for each in gaps if isinstance(each, ast.BinOp) and isinstance(each.op, ast.Sub)]
    pairs = [each for each in pairs if is_raised(each.left) or is_raised(each.right)]
    counted = {name for each in pairs for at in file.origins(each) for name in _names_in_range(at)}
    return bool(pairs) and not counted & names_read(part.comparators[0])


def _names_in_range(part: ast.AST) -> set[str]:
    return names_read(part) if isinstance(part, ast.Call) and call_name(part) == "arange" else set()


def _is_causal(evidence: Evidence, node: int) -> bool:
    """Whether a line above attention hands it a mask that is made of a triangle, and does not say that it is one."""
    for _, file, statement in statements_above(evidence, node):
        for call in walk(statement):
            if not isinstance(call, ast.Call) or _says_so(call):
                continue
            position = _POSITION if call_name(call) == "scaled_dot_product_attention" else -1
            masks = [argument(call, name, position) for name in _MASKS]
            if any(mask is not None and _is_triangle(file, mask) for mask in masks):
                return True
    return False


def _says_so(call: ast.Call) -> bool:
    told = [argument(call, name) for name in ("is_causal", "tgt_is_causal")]
    return any(each is not None and not (isinstance(each, ast.Constant) and not each.value) for each in told)


def _is_triangle(file: FileText, mask: ast.expr) -> bool:
    return any(isinstance(each, ast.Call) and call_name(each) in _MAKES_CAUSAL for each in file.origins(mask))


RULE = Rule(
    _find,
    "attention with masks of bools, causal masks, or masks that leave a window",
    (GPU_TIME, OPERATORS),
    (),
    _WORK.change,
)
