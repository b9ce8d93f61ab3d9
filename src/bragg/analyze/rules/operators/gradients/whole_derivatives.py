"""Hessians and Jacobians that are computed whole, only to be multiplied by vectors, by the text of the program."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.causes.needs import GPU_TIME, OPERATORS, TEXT
from bragg.analyze.causes.text.program_text import FileText, call_name, names_read
from bragg.analyze.causes.text.text_calls import factors_of, makers_of_called, statements_above
from bragg.analyze.causes.text.uses import use_of
from bragg.analyze.causes.work_finding import Work, line_findings
from bragg.analyze.engine import HostTime, Rule
from bragg.code.python_nodes import parts_of, walk
from bragg.model import Confidence, Finding, FrameKind

_WORK = Work(
    "whole-derivative",
    "a whole Hessian or Jacobian is computed, one derivative for each input or output, of which products are used",
    "if these are few: torch.func.jvp(torch.func.grad(f), (x,), (v,))[1] is the Hessian times v in one pass, jvp and "
    "vjp of f are the Jacobian and its transpose times v",
    0.8,
    Confidence.HEURISTIC,
    least_share=0.1,
    is_launched=True,
)
_ONE_BY_ONE = replace(_WORK, with_host=True)
_DERIVATIVES = ("hessian", "jacobian", "jacrev", "jacfwd")
_TRANSPOSES = ("T", "mT", "t", "transpose", "squeeze", "detach", "view", "reshape")
_PRODUCTS = ("matmul", "mv", "mm", "bmm", "dot")


def _find(evidence: Evidence) -> Iterator[Finding]:
    tree = evidence.profile.tree
    works = tree.sum_up(evidence.gpu_ns)
    hot = (tree.kind == FrameKind.PYTHON) & (works >= _WORK.least_share * float(evidence.gpu_ns.sum()))
    lines: dict[Work, list[int]] = {_WORK: [], _ONE_BY_ONE: []}
    for node in np.flatnonzero(hot).tolist():
        if _is_multiplied(evidence, node):
            lines[_ONE_BY_ONE if _is_one_by_one(evidence, node) else _WORK].append(node)
    for work, of_it in lines.items():
        yield from line_findings(evidence, of_it, work)


def _is_one_by_one(evidence: Evidence, line: int) -> bool:
    """Whether the host launches each one: `torch.autograd.functional` does, `torch.func` launches all at once."""
    at = evidence.text.at(line)
    return at is not None and "autograd.functional" in at[0].text


def _is_multiplied(evidence: Evidence, line: int) -> bool:
    """Whether a line computes a derivative of which the program uses nothing but products."""
    above = statements_above(evidence, line) if evidence.text.at(line) else iter(())
    for depth, (_, file, statement) in enumerate(above):
        if not depth and not any(_is_derivative(file, each) for each in walk(statement)):
            return False
        use = use_of(file, statement, _is_product)
        if use != "returned":
            return use == "part"
    return False


def _is_derivative(file: FileText, part: ast.AST) -> bool:
    """Whether it is `hessian(f, x)`, `hessian(f)(x)`, or a call of what is set to `hessian(f)`."""
    if not isinstance(part, ast.Call):
        return False
    made = [part, *(each for each in (part.func, *makers_of_called(file, part)) if isinstance(each, ast.Call))]
    names = [call_name(inner) for each in made for inner in parts_of(each, ast.Call)]
    return any(name in _DERIVATIVES for name in names)


def _is_product(file: FileText, part: ast.AST) -> bool:
    """Whether it multiplies a value, or its transpose, by something else."""
    while isinstance(part, ast.Attribute) or (isinstance(part, ast.Call) and call_name(part) in _TRANSPOSES):
        if call_name(part) not in (*_TRANSPOSES, *_PRODUCTS):
            return False
        part = file.parents[part]
    multiplied = factors_of(part, _PRODUCTS)
    return bool(multiplied) and not names_read(multiplied[0]) & names_read(multiplied[1])


RULE = Rule(
    _find,
    "Hessians and Jacobians of which products are used",
    (GPU_TIME, OPERATORS, TEXT),
    (),
    _WORK.change,
    host_time=HostTime.CAUSE,
)
