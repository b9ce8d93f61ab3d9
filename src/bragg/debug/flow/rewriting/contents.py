"""What statements contain, those inside of them included; found out in one walk over a function."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, field

from bragg.code.python_nodes import children, stored_names, walk

_EXITS = (ast.Return, ast.Break, ast.Continue)


@dataclass(slots=True)
class Contents:
    """What is in a statement.

    Attributes:
        names: Names that it reads or assigns.
        stored: Names that it assigns, each as often as it does.
        jumps: Programs may leave from within it, if only for the next trip of a loop in it.
        leaves: Programs may leave from within it to somewhere outside of it.
        returns: Programs may return from within it.
        gives: They may return a value.
    """

    names: set[str] = field(default_factory=set)
    stored: list[str] = field(default_factory=list)
    jumps: bool = False
    leaves: bool = False
    returns: bool = False
    gives: bool = False


def contents_of(statements: Sequence[ast.stmt]) -> dict[ast.AST, Contents]:
    """Of each statement, and of each inside of it."""
    found: dict[ast.AST, Contents] = {}
    for statement in statements:
        _find(statement, found)
    return found


def _find(statement: ast.stmt, found: dict[ast.AST, Contents]) -> Contents:
    one = found[statement] = Contents()
    is_loop = isinstance(statement, ast.For | ast.While)
    if isinstance(statement, _EXITS):
        one.jumps = one.leaves = True
        one.returns = isinstance(statement, ast.Return)
        one.gives = isinstance(statement, ast.Return) and statement.value is not None
    for child in children(statement):
        if isinstance(child, ast.stmt):
            inner = _find(child, found)
            one.names |= inner.names
            one.stored += inner.stored
            one.jumps |= inner.jumps
            one.leaves |= inner.returns if is_loop else inner.leaves
            one.returns |= inner.returns
            one.gives |= inner.gives
        else:
            nodes = walk(child)
            one.names.update(node.id for node in nodes if isinstance(node, ast.Name))
            one.stored += stored_names(nodes)
    return one
