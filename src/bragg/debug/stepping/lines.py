"""Lines of kernels that a debugger stops at without a `breakpoint()` in the text."""

from __future__ import annotations

import ast
from collections.abc import Callable
from pathlib import Path

from bragg.code.python_nodes import spans


class Stops:
    """The lines, and what is called there.

    Attributes:
        stop: Called while the kernel is at the line.
    """

    def __init__(self) -> None:
        self.stop: Callable[[], None] | None = None
        self._lines: list[tuple[Path, int]] = []

    def add(self, file: str, line: int) -> None:
        """Stop at a line from now on, in kernels that were not executed yet."""
        self._lines.append((Path(file).resolve(), line))

    def put_into(self, function: ast.FunctionDef, file: str) -> None:
        """Call `stop` before the statements of a rewritten function that stand at the lines."""
        if not self._lines:
            return
        here = Path(file).resolve()
        for line in (line for path, line in self._lines if path == here):
            _put(function, line)


def _put(function: ast.FunctionDef, line: int) -> None:
    bodies = [body for node in ast.walk(function) for body in _bodies(node)]
    found = [(body, at) for body in bodies for at, one in enumerate(body) if spans(one, line)]
    if not found:
        return
    body, at = max(found, key=lambda each: (each[0][each[1]].lineno, -each[1]))
    called = ast.parse("_bragg.stopped()").body[0]
    for node in ast.walk(called):
        ast.copy_location(node, body[at])
    body.insert(at, called)


def _bodies(node: ast.AST) -> list[list[ast.stmt]]:
    return [body for name in ("body", "orelse") if isinstance(body := getattr(node, name, None), list) and body]


STOPS = Stops()
