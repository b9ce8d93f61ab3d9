"""Walks over the text of Python. Those of `ast` also visit contexts and operators, and take three times as long."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

_Part = TypeVar("_Part", bound=ast.AST)

# Fields that hold a context, operators, or text.
_BARE = frozenset({"ctx", "op", "ops", "id", "attr", "arg", "kind", "type_comment", "conversion", "simple"})


class _Fields(dict[type, tuple[str, ...]]):
    """By the type of a node: its fields that may hold nodes."""

    def __missing__(self, kind: type[ast.AST]) -> tuple[str, ...]:
        is_constant = issubclass(kind, ast.Constant)
        found = self[kind] = () if is_constant else tuple(name for name in kind._fields if name not in _BARE)
        return found


_FIELDS = _Fields()


def fields_of(node: ast.AST) -> tuple[str, ...]:
    """Those fields of a node that may hold nodes other than contexts and operators."""
    return _FIELDS[type(node)]


def walk(node: ast.AST) -> list[ast.AST]:
    """A node and all below it, without contexts and operators, the upper ones first."""
    found = [node]
    for one in found:
        found += children(one)
    return found


def parts_of(node: ast.AST, kind: type[_Part]) -> Iterator[_Part]:
    """Those of one kind among a node and all below it, the upper ones first."""
    return (one for one in walk(node) if isinstance(one, kind))


def children(node: ast.AST) -> list[ast.AST]:
    """The nodes right below a node, without contexts and operators, in the order of its fields."""
    found: list[ast.AST] = []
    for name in _FIELDS[type(node)]:
        value: Any = getattr(node, name, None)
        if type(value) is list:
            found += [one for one in value if isinstance(one, ast.AST)]
        elif isinstance(value, ast.AST):
            found.append(value)
    return found


def name_of(call: ast.Call) -> str:
    """The last part of the name of what is called; empty: it has none."""
    return call.func.attr if isinstance(call.func, ast.Attribute) else str(getattr(call.func, "id", ""))


def given(call: ast.Call) -> list[ast.expr]:
    """Its arguments."""
    return [*call.args, *(word.value for word in call.keywords)]


def spans(node: ast.stmt | ast.expr, line: int) -> bool:
    """Whether a line is one of a statement's or an expression's, or of those inside of it."""
    return node.lineno <= line <= (node.end_lineno or node.lineno)


def stored_names(nodes: Iterable[ast.AST]) -> list[str]:
    """Names that some nodes assign, each as often as they do."""
    return [node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)]
