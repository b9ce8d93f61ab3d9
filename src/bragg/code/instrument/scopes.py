"""Lines of a kernel's source that its author named: `with bragg.kernel_scope("load q"):`."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from textwrap import dedent

__all__ = ["scopes_of"]

_NAME = "kernel_scope"


def scopes_of(source: str, first_line: int) -> dict[int, str]:
    """The innermost scope of each line that is in one, by line of the file.

    Args:
        source: Of the function, as it stands in the file.
        first_line: Of the source in its file.
    """
    try:
        tree = ast.parse(dedent(source))
    except SyntaxError:
        return {}
    found = sorted(_scopes(tree), key=lambda scope: (scope[1], -scope[2]))
    return {line + first_line - 1: name for name, start, end in found for line in range(start, end + 1)}


def _scopes(tree: ast.AST) -> Iterator[tuple[str, int, int]]:
    """Name, first line and last line of the body of each."""
    for node in ast.walk(tree):
        for item in node.items if isinstance(node, ast.With) else ():
            call = item.context_expr
            if not isinstance(call, ast.Call) or not call.args or not isinstance(call.args[0], ast.Constant):
                continue
            called = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
            if called == _NAME and isinstance(call.args[0].value, str):
                assert isinstance(node, ast.With)
                yield call.args[0].value, node.body[0].lineno, node.body[-1].end_lineno or node.body[-1].lineno
