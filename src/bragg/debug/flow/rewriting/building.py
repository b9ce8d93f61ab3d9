"""Nodes that a rewritten kernel has in the place of others. To parse their text would take ten times as long."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any, TypeVar

from bragg.code.python_nodes import walk

_LOAD, _STORE = ast.Load(), ast.Store()
_Node = TypeVar("_Node", bound=ast.AST)


def changed(node: _Node, **fields: Any) -> _Node:
    """The same node, in its place, with other values of some fields; the given one is not changed."""
    new: _Node = type(node).__new__(type(node))
    new.__dict__.update(node.__dict__)
    new.__dict__.update(fields)
    return new


class Place:
    """Makes nodes that stand where a node of the author stands.

    Args:
        at: The author's node.
        width: Columns of what is made; 0: it stands for no text, and no debugger need stop there.
    """

    def __init__(self, at: ast.AST, width: int = 1) -> None:
        line, column = at.lineno, at.col_offset  # type: ignore[attr-defined]
        self._at: dict[str, Any] = {
            "lineno": line,
            "col_offset": column,
            "end_lineno": line,
            "end_col_offset": column + width,
        }

    def constant(self, value: Any) -> ast.Constant:
        """A value, or a tuple of values."""
        return ast.Constant(value, **self._at)

    def name(self, name: str) -> ast.Name:
        """The value of a name."""
        return ast.Name(name, _LOAD, **self._at)

    def names(self, names: Sequence[str]) -> ast.Tuple:
        """A tuple of the values of names."""
        return ast.Tuple([ast.Name(name, _LOAD, **self._at) for name in names], _LOAD, **self._at)

    def expression(self, text: str) -> ast.expr:
        """What a text says."""
        if text.isidentifier():
            return self.name(text)
        parsed = ast.parse(text, mode="eval").body
        for node in walk(parsed):
            node.__dict__.update(self._at)
        return parsed

    def attribute(self, owner: str, name: str) -> ast.Attribute:
        """An attribute of what a name holds."""
        return ast.Attribute(self.name(owner), name, _LOAD, **self._at)

    def call(self, owner: str, method: str, *arguments: ast.expr) -> ast.Call:
        """A method of what a name holds, called."""
        return ast.Call(self.attribute(owner, method), list(arguments), [], **self._at)

    def helped(self, helper: str, *arguments: ast.expr) -> ast.Call:
        """A function of `bragg`, called."""
        return self.call("_bragg", helper, *arguments)

    def function(self, parameters: Sequence[str], body: ast.expr) -> ast.Lambda:
        """A `lambda`."""
        own = [ast.arg(name, None, None, **self._at) for name in parameters]
        return ast.Lambda(ast.arguments([], own, None, [], [], None, []), body, **self._at)

    def done(self, value: ast.expr) -> ast.Expr:
        """An expression as a statement."""
        return ast.Expr(value, **self._at)

    def set(self, name: str, value: ast.expr) -> ast.Assign:
        """A name gets a value."""
        return ast.Assign([self._stored(name)], value, **self._at)

    def set_each(self, names: Sequence[str], value: ast.expr) -> ast.Assign:
        """Names get the parts of a value."""
        return ast.Assign([ast.Tuple(list(map(self._stored, names)), _STORE, **self._at)], value, **self._at)

    def set_all(self, names: Sequence[str], value: ast.expr) -> ast.Assign:
        """Names get one value."""
        return ast.Assign(list(map(self._stored, names)), value, **self._at)

    def named(self, name: str, value: ast.expr) -> ast.NamedExpr:
        """A value, which a name holds from then on."""
        return ast.NamedExpr(self._stored(name), value, **self._at)

    def choice(self, test: ast.expr, first: ast.expr, second: ast.expr) -> ast.IfExp:
        """`first if test else second`."""
        return ast.IfExp(test, first, second, **self._at)

    def given_back(self, value: ast.expr) -> ast.Return:
        """`return` of a value."""
        return ast.Return(value, **self._at)

    def branch(self, test: ast.expr, body: list[ast.stmt]) -> ast.If:
        """An `if` without another way."""
        return ast.If(test, body, [], **self._at)

    def loop(self, test: ast.expr, body: list[ast.stmt]) -> ast.While:
        """A `while`."""
        return ast.While(test, body, [], **self._at)

    def _stored(self, name: str) -> ast.Name:
        return ast.Name(name, _STORE, **self._at)
