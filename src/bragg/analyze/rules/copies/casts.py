"""Copies that only change the type or the layout of a tensor."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.causes.frameworks import is_training
from bragg.analyze.causes.host_finding import moved, moved_to
from bragg.analyze.causes.needs import GPU_TIME
from bragg.analyze.causes.paths import below, hot_places, hottest_place, in_files, named, place_of
from bragg.analyze.causes.text.program_text import call_name
from bragg.analyze.causes.text.text_calls import lines_of, statements_above
from bragg.analyze.causes.thresholds import MUCH_GPU
from bragg.analyze.causes.work_finding import Work, work_findings
from bragg.analyze.engine import HostTime, Rule
from bragg.analyze.rules.copies.repetitions import repetitions
from bragg.model import Confidence, Finding, Place
from bragg.model.table import BoolArray

_WORK = Work(
    "type-copies",
    "copies that only change type or layout",
    "keep tensors in one type and layout: cast weights once, no .to() and no .contiguous() each time",
    0.7,
    Confidence.HEURISTIC,
    with_host=True,
    least_share=0.05,
)
# Of weights that do not change: autocast keeps what it has cast until it is left, also when an optimizer has gone on.
_CHANGE_OF_AUTOCAST = (
    "enter autocast once around the loop: it casts weights anew each time it is entered; or keep them in bfloat16"
)
_CHANGE_OF_FROZEN = "convert the weights to bfloat16 once: autocast keeps no cast of weights that need no gradient"
_FROZEN = re.compile(r"\brequires_grad_\(False\)|\brequires_grad = False")
# An optimizer adds updates that are smaller than the distance between two numbers of 8 bits.
_CHANGE_OF_TRAINING = "keep the weights in bfloat16, if the training stands it: small updates are lost"
_ASKED = 0.3
_AUTOCAST = re.compile(r"[/\\]torch[/\\]amp[/\\]autocast_mode\.py$")
# Operators whose arguments autocast casts.
_OF_CASTS = re.compile(r"aten::(?:linear|conv\w*|matmul|mm|bmm|addmm|baddbmm|einsum|scaled_dot_product_attention)")
_COPIES = re.compile(r"direct_copy_kernel|copy_kernel_cuda")
_OPERATORS = re.compile(r"aten::(?:to|_to_copy|copy_|contiguous|clone|type_as)")


def _find(evidence: Evidence) -> Iterator[Finding]:
    profile = evidence.profile
    copies = named(profile, _COPIES.search)
    launching = named(profile, _OPERATORS.fullmatch) & (profile.tree.sum_up(copies.astype(np.int64)) > 0)
    others = below(profile, launching) & (profile.tree.sum_up(evidence.gpu_ns) == 0)
    # What repeats a tensor has a rule of its own.
    nodes = (copies | launching | others) & ~repetitions(evidence)
    by_autocast = nodes & below(profile, named(profile, _OF_CASTS.fullmatch)) & copies
    is_autocast = float(evidence.gpu_ns[by_autocast].sum()) > float(evidence.gpu_ns[nodes].sum()) / 2
    enters = below(profile, in_files(profile, _AUTOCAST))
    for finding in work_findings(evidence, nodes, _WORK):
        weight = np.where(by_autocast, evidence.gpu_ns, 0.0)
        entered = _entry(evidence, int(weight.argmax())) if is_autocast else Place()
        if is_autocast and not entered.file:
            entered = hottest_place(profile, enters, evidence.sampled_ns)
        if is_autocast and is_training(profile):
            yield replace(finding, hint=_CHANGE_OF_TRAINING)
        elif entered.file:
            hint = _CHANGE_OF_FROZEN if lines_of(evidence, _FROZEN) else _CHANGE_OF_AUTOCAST
            yield moved(replace(finding, hint=hint), entered)
        else:
            yield _at_its_line(evidence, finding, copies, launching & evidence.callers.is_direct)


def _entry(evidence: Evidence, node: int) -> Place:
    """Where the program enters autocast above a node: its innermost `with`, or the decorator of a function."""
    for line, file, statement in statements_above(evidence, node):
        part: ast.AST = statement
        while part in file.parents:
            part = file.parents[part]
            for each in _contexts(part):
                if call_name(each) == "autocast":
                    return Place(place_of(evidence.profile, line).file, each.lineno, node=line)
            if isinstance(part, (ast.FunctionDef, ast.AsyncFunctionDef)):
                break
    return Place()


def _contexts(part: ast.AST) -> list[ast.expr]:
    """What a `with` enters, and what a function is decorated with."""
    if isinstance(part, (ast.With, ast.AsyncWith)):
        return [each.context_expr for each in part.items]
    return part.decorator_list if isinstance(part, (ast.FunctionDef, ast.AsyncFunctionDef)) else []


def _at_its_line(evidence: Evidence, finding: Finding, copies: BoolArray, asked: BoolArray) -> Finding:
    """The finding where the program asks for copies, if these are a good part: other operators make some for them."""
    weight = np.where(copies & below(evidence.profile, asked), evidence.gpu_ns, 0.0)
    if float(weight.sum()) < _ASKED * float(evidence.gpu_ns[copies].sum()):
        return finding
    lines = hot_places(evidence.profile, weight > 0, weight)
    return moved_to(finding, lines)


RULE = Rule(
    _find,
    "copies that change only type or layout",
    (GPU_TIME,),
    (MUCH_GPU,),
    _WORK.change,
    host_time=HostTime.CAUSE,
)
