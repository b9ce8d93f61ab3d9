"""The terms that an address is the sum of, as the source of a function tells: `h * stride` of `x + h * stride + i`."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from functools import lru_cache

from bragg.code.python_nodes import walk
from bragg.debug.expressions import accesses_at, function_at, pointer_of


@lru_cache(maxsize=1024)
def address_terms(file: str, line: int, kind: str, tensor: str) -> list[ast.expr]:
    """What is added to a pointer before an access, but for what loops add to it; arguments are those of `access_text`.

    Empty: the source does not tell.
    """
    found, function = accesses_at(file, line, kind, tensor), function_at(file, line)
    pointer = pointer_of(found[0]) if len(found) == 1 else None
    if pointer is None or function is None:
        return []
    return list(_terms(pointer, _added(function, line), set()))


def whole_terms(
    file: str, line: int, kind: str, tensor: str, is_sum: Callable[[ast.Name, list[ast.expr]], bool]
) -> list[ast.expr]:
    """The same, but names that are no sum of what goes along several axes stay whole.

    Args:
        file: As of `access_text`, and the next three.
        line: Likewise.
        kind: Likewise.
        tensor: Likewise.
        is_sum: Whether a name is, of the terms that it is set to.
    """
    found, function = accesses_at(file, line, kind, tensor), function_at(file, line)
    pointer = pointer_of(found[0]) if len(found) == 1 else None
    if pointer is None or function is None:
        return []
    added = _added(function, line)
    sums = {
        name: values
        for name, values in added.items()
        if is_sum(ast.Name(name), [term for value in values for term in _terms(value, added, {name})])
    }
    return list(_terms(pointer, sums, set()))


def _terms(node: ast.expr, added: dict[str, list[ast.expr]], seen: set[str]) -> Iterator[ast.expr]:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        yield from _terms(node.left, added, seen)
        yield from _terms(node.right, added, seen)
    elif isinstance(node, ast.Name) and node.id in added:
        values = [] if node.id in seen else added[node.id]
        seen.add(node.id)
        for value in values:
            yield from _terms(value, added, seen)
    else:
        yield node


def _added(function: ast.FunctionDef, line: int) -> dict[str, list[ast.expr]]:
    """For each name: the values that it is set to or that are added to it, above a line and outside of loops."""
    nodes = walk(function)
    loops = [node for node in nodes if isinstance(node, ast.For | ast.While)]
    inside = {id(node) for loop in loops for node in walk(loop)}
    found: dict[str, list[ast.expr]] = {}
    for node in nodes:
        if id(node) in inside or getattr(node, "lineno", line) >= line:
            continue
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            found.setdefault(node.targets[0].id, []).append(node.value)
        elif isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add) and isinstance(node.target, ast.Name):
            found.setdefault(node.target.id, []).append(node.value)
    return found
