"""Walks over the text of a kernel. Those of `ast` also visit contexts and operators, and take three times as long."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

__all__ = ["children", "walk"]

_BARE = frozenset(
    kind
    for base in (ast.expr_context, ast.boolop, ast.operator, ast.unaryop, ast.cmpop)
    for kind in base.__subclasses__()
)


def walk(node: ast.AST) -> list[ast.AST]:
    """A node and all below it, without contexts and operators, the upper ones first."""
    found = [node]
    for one in found:
        found.extend(children(one))
    return found


def children(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes right below a node, without contexts and operators, in the order of its fields."""
    for name in node._fields:
        value: Any = getattr(node, name, None)
        kind = type(value)
        if kind is list:
            for one in value:
                if isinstance(one, ast.AST) and type(one) not in _BARE:
                    yield one
        elif kind not in _BARE and isinstance(value, ast.AST):
            yield value
