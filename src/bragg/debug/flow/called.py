"""Functions of the author that a kernel calls, as its text names them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from types import FunctionType, ModuleType
from typing import Any

from bragg.debug.flow.jitted import is_jitted, is_of, python_function
from bragg.debug.flow.program import Program
from bragg.debug.flow.text import Text


def texts_of(program: Program) -> Iterator[Text]:
    """The text of a function, and of all that it calls; Triton's own functions are left out."""
    seen: set[int] = set()
    waiting = [program]
    for one in waiting:
        if id(one) in seen or not one.is_rewritten:
            continue
        seen.add(id(one))
        yield one.text
        targets = (_called(expression, one.function) for expression in one.text.free_names)
        waiting += [
            Program.of(python_function(target), target)
            for target in targets
            if is_jitted(target) and not is_of(python_function(target), "triton")
        ]


def _called(expression: ast.expr, function: FunctionType) -> Any:
    if isinstance(expression, ast.Name):
        return function.__globals__.get(expression.id)
    if isinstance(expression, ast.Attribute) and isinstance(expression.value, ast.Name):
        module = function.__globals__.get(expression.value.id)
        is_own = isinstance(module, ModuleType) and not module.__name__.startswith("triton.")
        return getattr(module, expression.attr, None) if is_own else None
    return None
