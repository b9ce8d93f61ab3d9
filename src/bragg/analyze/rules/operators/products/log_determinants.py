"""Log-determinants of matrices that a Cholesky factor would give, by the text of the statements that ask for them."""

from __future__ import annotations

import ast

import numpy as np

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.causes.paths import OPERATIONS, line_above
from bragg.analyze.causes.text.program_text import FileText, call_name
from bragg.analyze.causes.text.text_calls import calls_at
from bragg.analyze.causes.text.uses import is_only_for
from bragg.code.python_nodes import parts_of
from bragg.model.table import BoolArray

_BOUNDS = ("maximum", "clip", "clamp", "clamp_min", "abs")


def of_log_determinants(evidence: Evidence, nodes: BoolArray) -> BoolArray:
    """Those of some factorizations that are made for a log-determinant alone: both [n_nodes]."""
    found = np.zeros(len(nodes), np.bool_)
    for node in np.flatnonzero(nodes).tolist():
        line = line_above(evidence.profile, node, OPERATIONS)
        at = None if line is None else evidence.text.at(line)
        found[node] = at is not None and _asks(*at)
    return found


def _asks(file: FileText, statement: ast.stmt) -> bool:
    if any(_is_of_factored(file, each) for each in calls_at(statement, "slogdet", "logdet", "det")):
        return True
    return is_only_for(file, statement, calls_at(statement, "eigvalsh"), _is_sum_of_logarithms)


def _is_sum_of_logarithms(file: FileText, part: ast.AST) -> bool:
    """Whether what is around a value adds up its logarithms: `log(w)` of `log(w).sum()`."""
    part = _called(file, part)
    while isinstance(part, ast.Call) and call_name(part) in _BOUNDS:
        part = _called(file, file.parents[part])
    if not (isinstance(part, ast.Call) and call_name(part) == "log"):
        return False
    above = _called(file, file.parents[part])
    return isinstance(above, ast.Call) and call_name(above) == "sum"


def _called(file: FileText, part: ast.AST) -> ast.AST:
    """The call of a method, `w.log()`, for the method itself."""
    return file.parents[part] if isinstance(part, ast.Attribute) else part


def _is_of_factored(file: FileText, call: ast.Call) -> bool:
    """Whether the program makes a Cholesky factor of the same matrix, too."""
    calls = list(parts_of(file.tree, ast.Call))
    factors = [each for each in calls if call_name(each) in ("cholesky", "cholesky_ex", "cho_factor")]
    factored = {made for each in factors for made in file.makers(_matrix(each))}
    return not factored.isdisjoint(file.makers(_matrix(call)))


def _matrix(call: ast.Call) -> ast.expr:
    """What `linalg.det(a)` or `a.det()` is of."""
    if call.args:
        return call.args[0]
    return call.func.value if isinstance(call.func, ast.Attribute) else call
