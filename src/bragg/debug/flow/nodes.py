"""What the constants of a launch decide in the text of a kernel.

The other branch of a condition is not executed, whatever the data is.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Mapping, Sequence
from types import NoneType
from typing import Any

from bragg.code.python_nodes import children, given, stored_names, walk

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
