"""Walks over the text of a kernel. Those of `ast` also visit contexts and operators, and take three times as long.

Some conditions are decided by the constants of a launch: the other branch is not executed, whatever the data is.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Iterable, Mapping, Sequence
from types import NoneType
from typing import Any

__all__ = [
    *("PLAIN", "Fixed", "children", "deciding_names", "fields_of", "fixed_names", "given", "live_nodes", "name_of"),
    *("spans", "stored_names", "value_of", "walk"),
]

Fixed = Mapping[str, Any]
"""Names that hold one value of a plain type throughout a function, and that value."""

PLAIN = (bool, int, float, str, NoneType)
"""Types of such values."""

_COMPARED = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
}
# Of numbers that are not negative, these are the same in Python and in a kernel.
_COMPUTED = {ast.BitAnd: operator.and_, ast.BitOr: operator.or_, ast.Mod: operator.mod}

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


def value_of(node: ast.expr, fixed: Fixed) -> tuple[Any] | None:
    """The value of an expression; None: it is not known."""
    match node:
        case ast.Constant(value=value) if isinstance(value, PLAIN):
            return (value,)
        case ast.Name(id=name) if name in fixed:
            return (fixed[name],)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            known = value_of(operand, fixed)
            return None if known is None else (not known[0],)
        case ast.BoolOp(op=op, values=values):
            parts = [value_of(one, fixed) for one in values]
            decisive = isinstance(op, ast.Or)
            if any(part is not None and bool(part[0]) is decisive for part in parts):
                return (decisive,)
            return None if None in parts else (not decisive,)
        case ast.Compare(left=left, ops=[op], comparators=[right]):
            return _computed(_COMPARED.get(type(op)), value_of(left, fixed), value_of(right, fixed))
        case ast.BinOp(left=left, op=op, right=right):
            sides = value_of(left, fixed), value_of(right, fixed)
            is_natural = all(side is not None and type(side[0]) is int and side[0] >= 0 for side in sides)
            return _computed(_COMPUTED.get(type(op)), *sides) if is_natural else None
        case ast.Call(func=ast.Attribute(attr="constexpr"), args=[argument], keywords=[]):
            return value_of(argument, fixed)
    return None


def _computed(function: Any, left: tuple[Any] | None, right: tuple[Any] | None) -> tuple[Any] | None:
    if function is None or left is None or right is None:
        return None
    try:
        return (function(left[0], right[0]),)
    except (TypeError, ZeroDivisionError):
        return None


def fixed_names(nodes: Sequence[ast.AST], arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Names that hold one value: arguments that are not assigned, and constants that are made of them.

    Args:
        nodes: All of a function.
        arguments: Values of its parameters, as far as they are known.
    """
    stored = stored_names(nodes)
    fixed = {name: value for name, value in arguments.items() if name not in stored and isinstance(value, PLAIN)}
    for node in nodes:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value is not None:
            known = value_of(node.value, fixed) if stored.count(node.target.id) == 1 else None
            if known is not None:
                fixed[node.target.id] = known[0]
    return fixed


def deciding_names(nodes: Sequence[ast.AST]) -> frozenset[str]:
    """Names that a condition may be decided by: in conditions, annotated assignments, and calls among some nodes."""
    found: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.If | ast.IfExp):
            parts = [node.test]
        elif isinstance(node, ast.AnnAssign):
            parts = [node.value] if node.value else []
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            parts = given(node)
        else:
            continue
        found.update(one.id for part in parts for one in walk(part) if isinstance(one, ast.Name))
    return frozenset(found)


def live_nodes(tree: ast.AST, fixed: Fixed) -> list[ast.AST]:
    """A node and all below it, without branches that are not executed."""
    found: list[ast.AST] = [tree]
    for node in found:
        if isinstance(node, ast.If | ast.IfExp) and (known := value_of(node.test, fixed)) is not None:
            chosen: Any = node.body if known[0] else node.orelse
            found.extend([node.test, *(chosen if isinstance(chosen, list) else [chosen])])
        else:
            found.extend(children(node))
    return found
