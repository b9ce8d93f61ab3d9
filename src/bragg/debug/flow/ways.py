"""Names of which the ways of a condition take one each: the compiler wants one type of them, whichever way is taken."""

from __future__ import annotations

import ast
from collections.abc import Container, Iterator, Sequence

from bragg.debug.flow.nodes import walk

__all__ = ["are_names", "taken_names"]

_RETURNED = ""


def are_names(node: ast.IfExp, names: Container[str]) -> bool:
    """Both sides of a conditional expression are mere names of these."""
    return all(isinstance(side, ast.Name) and side.id in names for side in (node.body, node.orelse))


def taken_names(node: ast.If, names: Container[str]) -> Iterator[tuple[str, str, str]]:
    """What both ways of an `if` give one result by a mere name.

    Args:
        node: The statement.
        names: Those that count.

    Yields:
        What the compiler says where their types differ, and the name that either way takes.
    """
    first, second = _taken(node.body, names), _taken(node.orelse, names)
    for result in sorted(first.keys() & second.keys()):
        what = "Inconsistent return types" if result == _RETURNED else f"Mismatched type for {result}"
        yield what, first[result], second[result]


def _taken(way: Sequence[ast.stmt], names: Container[str]) -> dict[str, str]:
    """Results of a way that are another name's value before it."""
    stored = [inner.id for one in way for inner in walk(one) if isinstance(inner, ast.Name) and _is_stored(inner)]
    found = {}
    for statement in way:
        if isinstance(statement, ast.Return):
            result = _RETURNED
        elif isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
            result = statement.targets[0].id
        else:
            continue
        value = statement.value
        if isinstance(value, ast.Name) and value.id in names and value.id not in stored and stored.count(result) <= 1:
            found[result] = value.id
    return found


def _is_stored(name: ast.Name) -> bool:
    return isinstance(name.ctx, ast.Store)
