"""Lines that a debugger is asked to stop at: whether kernels have them, by the text of their file."""

from __future__ import annotations

import ast
from pathlib import Path

from bragg.code.python_nodes import parts_of, spans
from bragg.errors import UsageError

_SHOWN = 5


def require_line_of_kernel(file: str, line: int, *, is_script: bool) -> None:
    """Make sure, before anything runs, that a kernel may get to a line.

    Args:
        file: That has the line.
        line: From 1 on.
        is_script: The program itself: no other file makes a kernel of a function without a decorator.

    Raises:
        UsageError: None does.
    """
    tree = _parsed(file)
    if tree is None:
        return
    functions = [one for one in parts_of(tree, ast.FunctionDef) if _has(one, line)]
    innermost = max(functions, key=lambda one: one.lineno, default=None)
    if innermost is None:
        raise UsageError(f"{file}:{line} is no statement of a function", hint=kernels_of(file))
    if is_script and not innermost.decorator_list and innermost.name not in _passed_on(tree):
        raise UsageError(f"{file}:{line} is in {innermost.name}, which is no kernel", hint=kernels_of(file))


def kernels_of(file: str) -> str:
    """A sentence that names the functions of a file that are decorated as kernels, with the lines of their bodies."""
    tree = _parsed(file)
    kernels = [one for one in parts_of(tree, ast.FunctionDef) if _is_kernel(one)] if tree else []
    if not kernels:
        return f"{file} has no function with @triton.jit; of another file: --break norm.py:55"
    shown = [f"{one.name} (lines {one.body[0].lineno} to {one.body[-1].end_lineno})" for one in kernels[:_SHOWN]]
    more = f" and {len(kernels) - _SHOWN} more" if len(kernels) > _SHOWN else ""
    return f"Kernels of {file}: {', '.join(shown)}{more}"


def _parsed(file: str) -> ast.Module | None:
    """None: what runs the program will say what is wrong with it."""
    try:
        return ast.parse(Path(file).read_bytes())
    except (OSError, SyntaxError, ValueError):
        return None


def _has(function: ast.FunctionDef, line: int) -> bool:
    return any(spans(statement, line) for statement in function.body)


def _is_kernel(function: ast.FunctionDef) -> bool:
    """It has a decorator such as `@triton.jit`, `@gluon.jit` and `@jit(do_not_specialize=...)`."""
    made = [one.func if isinstance(one, ast.Call) else one for one in function.decorator_list]
    return any(ast.unparse(one).rpartition(".")[2] == "jit" for one in made)


def _passed_on(tree: ast.Module) -> set[str]:
    """Names that are used other than in calls of what they name: `triton.jit(f)` may make a kernel of it."""
    called = {id(one.func) for one in parts_of(tree, ast.Call)}
    return {one.id for one in parts_of(tree, ast.Name) if id(one) not in called}
