"""Lines of a kernel's source that its author named: `with bragg.kernel_scope("load q"):`, `kernel_event_begin(…)`."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from textwrap import dedent
from typing import NamedTuple

from bragg.code.instrument.segments import EventCall

__all__ = ["ScopeLines", "scopes_of"]

_NAME = "kernel_scope"
_EVENTS = {"kernel_event_begin": True, "kernel_event_end": False}


class ScopeLines(NamedTuple):
    """Scopes and events by lines of the file.

    Attributes:
        by_line: Name of the innermost scope of each line that is in one.
        by_first_line: Name of the scope that a line begins.
        events: What is called at a line.
    """

    by_line: dict[int, str]
    by_first_line: dict[int, str]
    events: dict[int, EventCall]


def scopes_of(source: str, first_line: int) -> ScopeLines:
    """The scopes and events of a function, or of a file.

    Args:
        source: As it stands in the file.
        first_line: Of the source in its file.
    """
    try:
        tree = ast.parse(dedent(source))
    except SyntaxError:
        return ScopeLines({}, {}, {})
    found = sorted(_scopes(tree), key=lambda scope: (scope[2], -scope[3]))
    return ScopeLines(
        {line + first_line - 1: name for name, _, start, end in found for line in range(start, end + 1)},
        {line + first_line - 1: name for name, line, _, _ in found},
        {line + first_line - 1: event for line, event in _events(tree, first_line - 1)},
    )


def _scopes(tree: ast.AST) -> Iterator[tuple[str, int, int, int]]:
    """Name, line that begins it, and first and last line of the body of each."""
    for node in ast.walk(tree):
        for item in node.items if isinstance(node, ast.With) else ():
            called, name = _called(item.context_expr)
            if called == _NAME and name is not None:
                assert isinstance(node, ast.With)
                last = node.body[-1]
                yield name, item.context_expr.lineno, node.body[0].lineno, last.end_lineno or last.lineno


def _events(tree: ast.AST, shift: int) -> Iterator[tuple[int, EventCall]]:
    """Line of each call, and what it does; calls of inner functions once more, and last."""
    for function in ast.walk(tree):
        if not isinstance(function, ast.FunctionDef):
            continue
        lines = function.lineno + shift, (function.end_lineno or function.lineno) + shift
        for node in ast.walk(function):
            called, name = _called(node)
            if called in _EVENTS and name is not None:
                assert isinstance(node, ast.Call)
                has_value = len(node.args) + len(node.keywords) > 1
                yield node.lineno, EventCall(name, _EVENTS[called], has_value, *lines)


def _called(node: ast.AST) -> tuple[str, str | None]:
    """What a call calls, and its first argument, if that is text; nothing: it is no call."""
    if not isinstance(node, ast.Call):
        return "", None
    called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    first = node.args[0].value if node.args and isinstance(node.args[0], ast.Constant) else None
    return called, first if isinstance(first, str) else None
