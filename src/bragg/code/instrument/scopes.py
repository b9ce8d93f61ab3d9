"""Lines of a kernel's source that its author named: `with bragg.kernel_scope("load q"):`, `kernel_event_begin(…)`.

Those of Proton's language, `pl.scope("load q")` and the like, count as well, if the file imports it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from textwrap import dedent
from typing import NamedTuple

from bragg.code.instrument.segments import EventCall
from bragg.code.python_nodes import walk

_SCOPES = ("kernel_scope", "pl.scope")
_ENTER, _EXIT = "pl.enter_scope", "pl.exit_scope"
_EVENTS = {"kernel_event_begin": True, "kernel_event_end": False, "pl.start_event": True, "pl.end_event": False}
_ALLOCATE = "pl.allocate_event"
_OWN = ("kernel_scope", "kernel_event_begin", "kernel_event_end")
_PROTON = ("triton.profiler", "bragg.proton")
_LANGUAGE = "language"
_LANGUAGES = tuple(f"{package}.{_LANGUAGE}" for package in _PROTON)


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


class _Call(NamedTuple):
    """A call of what names something.

    Attributes:
        function: As it is called in this file's tables.
        name: Text that it is given first, or that its event was made with.
        line: Of the call.
        has_value: It is given something else, too.
    """

    function: str
    name: str
    line: int
    has_value: bool


class _Names:
    """What the calls of a file mean.

    Args:
        tree: Of the file.
    """

    def __init__(self, tree: ast.AST) -> None:
        self._functions = {name: name for name in _OWN}
        self._modules = frozenset(_language_names(tree))
        for node in walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module in _LANGUAGES:
                self._functions |= {each.asname or each.name: f"pl.{each.name}" for each in node.names}
        self._events: dict[str, str] = {}
        for node in walk(tree):
            made = self.call(node.value) if isinstance(node, ast.Assign) else None
            if made is not None and made.function == _ALLOCATE:
                assert isinstance(node, ast.Assign)
                self._events |= {each.id: made.name for each in node.targets if isinstance(each, ast.Name)}

    def call(self, node: ast.AST) -> _Call | None:
        """What a node calls; None: nothing that names something."""
        if not isinstance(node, ast.Call) or not node.args:
            return None
        first = node.args[0]
        name = first.value if isinstance(first, ast.Constant) else None
        if isinstance(first, ast.Name):
            name = self._events.get(first.id)
        function = self._function(node.func)
        if not function or not isinstance(name, str):
            return None
        return _Call(function, name, node.lineno, len(node.args) + len(node.keywords) > 1)

    def _function(self, called: ast.expr) -> str:
        if isinstance(called, ast.Name):
            return self._functions.get(called.id, "")
        if not isinstance(called, ast.Attribute):
            return ""
        return f"pl.{called.attr}" if ast.unparse(called.value) in self._modules else _own(called.attr)


def _own(name: str) -> str:
    return name if name in _OWN else ""


def _language_names(tree: ast.AST) -> Iterator[str]:
    """What Proton's language is called in a file: `pl`, `proton.language`."""
    for node in walk(tree):
        if not isinstance(node, (ast.Import, ast.ImportFrom)):
            continue
        package = f"{node.module}." if isinstance(node, ast.ImportFrom) else ""
        for each in node.names:
            local, module = each.asname or each.name, package + each.name
            if module in _PROTON:
                yield f"{local}.{_LANGUAGE}"
            elif module in _LANGUAGES:
                yield local


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
    names, shift = _Names(tree), first_line - 1
    found = sorted([*_scopes(tree, names), *_regions(tree, names)], key=lambda scope: (scope[2], -scope[3]))
    return ScopeLines(
        {line + shift: name for name, _, start, end in found for line in range(start, end + 1)},
        {line + shift: name for name, line, _, _ in found},
        dict(_events(tree, names, shift)),
    )


def _scopes(tree: ast.AST, names: _Names) -> Iterator[tuple[str, int, int, int]]:
    """Name, line that begins it, and first and last line of the body of each."""
    for node in walk(tree):
        for item in node.items if isinstance(node, ast.With) else ():
            call = names.call(item.context_expr)
            if call is not None and call.function in _SCOPES:
                assert isinstance(node, ast.With)
                last = node.body[-1]
                yield call.name, call.line, node.body[0].lineno, last.end_lineno or last.lineno


def _regions(tree: ast.AST, names: _Names) -> Iterator[tuple[str, int, int, int]]:
    """The same for what is entered and left by calls of one function, line by line."""
    for function in walk(tree):
        if not isinstance(function, ast.FunctionDef):
            continue
        calls = [call for node in walk(function) if (call := names.call(node)) is not None]
        entered: dict[str, int] = {}
        for call in sorted(calls, key=lambda each: each.line):
            if call.function == _ENTER:
                entered[call.name] = call.line
            elif call.function == _EXIT and call.name in entered:
                start = entered.pop(call.name)
                yield call.name, start, start + 1, call.line - 1


def _events(tree: ast.AST, names: _Names, shift: int) -> Iterator[tuple[int, EventCall]]:
    """Line of each call, and what it does; calls of inner functions once more, and last."""
    for function in walk(tree):
        if not isinstance(function, ast.FunctionDef):
            continue
        lines = function.lineno + shift, (function.end_lineno or function.lineno) + shift
        for node in walk(function):
            call = names.call(node)
            if call is not None and call.function in _EVENTS:
                yield call.line + shift, EventCall(call.name, _EVENTS[call.function], call.has_value, *lines)
