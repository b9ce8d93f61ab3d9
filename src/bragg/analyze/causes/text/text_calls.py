"""Work of a program by the text of the lines that call it."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Collection, Iterator

import numpy as np

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.causes.paths import lines_above
from bragg.analyze.causes.text.program_text import FileText, call_name
from bragg.code.python_nodes import parts_of, walk
from bragg.model import Place
from bragg.model.ids import NodeId
from bragg.model.table import BoolArray

Test = Callable[[FileText, ast.stmt], object]


def fits(evidence: Evidence, nodes: BoolArray, test: Test) -> BoolArray:
    """Those of some nodes that a line calls whose statement passes a test: both [n_nodes]."""
    line = evidence.callers.line
    passed = {
        each: bool(test(*at)) for each in np.unique(line[nodes & (line > 0)]).tolist() if (at := evidence.text.at(each))
    }
    chosen = np.zeros(len(nodes), np.bool_)
    chosen[[each for each, has_passed in passed.items() if has_passed]] = True
    found: BoolArray = nodes & chosen[line]
    return found


def statements_above(evidence: Evidence, node: int) -> Iterator[tuple[NodeId, FileText, ast.stmt]]:
    """The lines of the program above a node whose text is known, the innermost first."""
    for line in reversed(lines_above(evidence.profile, NodeId(node))):
        if at := evidence.text.at(line):
            yield line, *at


def lines_of(evidence: Evidence, text: re.Pattern[str]) -> list[Place]:
    """Where simple statements and `with` of the program match a text, as `ast.unparse` writes it."""
    found = []
    for name in evidence.profile.sources:
        file = evidence.text.file(name) if name.endswith(".py") else None
        for each in walk(file.tree) if file else ():
            part = each.context_expr if isinstance(each, ast.withitem) else each
            if isinstance(each, (ast.Assign, ast.AnnAssign, ast.Expr, ast.withitem)) and text.search(ast.unparse(part)):
                found.append(Place(name, getattr(part, "lineno", 0)))
    return found


def calls_at(part: ast.AST, *names: str) -> list[ast.Call]:
    """Calls of these names in a statement or an expression."""
    return [each for each in parts_of(part, ast.Call) if call_name(each) in names]


def makers_of_called(file: FileText, call: ast.Call) -> list[ast.expr]:
    """What a variable or an attribute that is called is set to."""
    return file.makers(call.func) if isinstance(call.func, (ast.Name, ast.Attribute)) else []


def is_layer(file: FileText, call: ast.Call, kinds: re.Pattern[str]) -> bool:
    """Whether a call is of a layer of these kinds: classes by their names."""
    made = makers_of_called(file, call)
    return bool(made) and all(isinstance(each, ast.Call) and kinds.fullmatch(call_name(each)) for each in made)


def argument(call: ast.Call, name: str, position: int = -1) -> ast.expr | None:
    """An argument of a call that is given and is not None, by its name or its position."""
    found = next((each.value for each in call.keywords if each.arg == name), None)
    if found is None and 0 <= position < len(call.args):
        found = call.args[position]
    return None if isinstance(found, ast.Constant) and found.value is None else found


def operands(call: ast.Call) -> list[ast.expr]:
    """What `x.sum(1)` or `torch.sum(x, 1)` is of."""
    is_method = isinstance(call.func, ast.Attribute) and not _is_library(call.func.value)
    return [call.func.value] if is_method and isinstance(call.func, ast.Attribute) else call.args[:1]


def factors_of(product: ast.AST | None, calls: Collection[str]) -> list[ast.expr]:
    """The two matrices that `a @ b`, or a call of one of these functions, multiplies; empty: it does not."""
    if isinstance(product, ast.BinOp) and isinstance(product.op, ast.MatMult):
        return [product.left, product.right]
    if isinstance(product, ast.Call) and call_name(product) in calls and len(product.args) in (1, 2):
        return [*operands(product), product.args[-1]]
    return []


def _is_library(value: ast.expr) -> bool:
    while isinstance(value, ast.Attribute):  # torch.linalg
        value = value.value
    return isinstance(value, ast.Name) and value.id in ("torch", "F", "np", "functional", "nn", "linalg")


def dimension(reduction: ast.Call) -> int | None:
    """Along which dimension `x.sum(1)` or `torch.sum(x, dim=1)` is; None: it names none, or several."""
    found = argument(reduction, "dim", 0 if reduction.args[:1] != operands(reduction) else 1)
    try:
        value = None if found is None else ast.literal_eval(found)
    except ValueError:
        return None
    return value if isinstance(value, int) else None
