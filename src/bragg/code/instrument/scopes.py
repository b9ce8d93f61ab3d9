"""Lines of a kernel's source that its author named: `with bragg.kernel_scope("load q"):`."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from textwrap import dedent
from typing import NamedTuple

__all__ = ["ScopeLines", "scopes_of"]

_NAME = "kernel_scope"


class ScopeLines(NamedTuple):
    """Scopes by lines of the file.

    Attributes:
        by_line: Name of the innermost scope of each line that is in one.
        by_first_line: Name of the scope that a line begins.
    """

    by_line: dict[int, str]
    by_first_line: dict[int, str]


def scopes_of(source: str, first_line: int) -> ScopeLines:
    """The scopes of a function.

    Args:
        source: Of the function, as it stands in the file.
        first_line: Of the source in its file.
    """
    try:
        tree = ast.parse(dedent(source))
    except SyntaxError:
        return ScopeLines({}, {})
    found = sorted(_scopes(tree), key=lambda scope: (scope[2], -scope[3]))
    return ScopeLines(
        {line + first_line - 1: name for name, _, start, end in found for line in range(start, end + 1)},
        {line + first_line - 1: name for name, line, _, _ in found},
    )


def _scopes(tree: ast.AST) -> Iterator[tuple[str, int, int, int]]:
    """Name, line that begins it, and first and last line of the body of each."""
    for node in ast.walk(tree):
        for item in node.items if isinstance(node, ast.With) else ():
            call = item.context_expr
            if not isinstance(call, ast.Call) or not call.args or not isinstance(call.args[0], ast.Constant):
                continue
            called = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
            if called == _NAME and isinstance(call.args[0].value, str):
                assert isinstance(node, ast.With)
                last = node.body[-1]
                yield call.args[0].value, call.lineno, node.body[0].lineno, last.end_lineno or last.lineno
