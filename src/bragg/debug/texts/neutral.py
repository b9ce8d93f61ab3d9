"""What lanes that a mask leaves out should hold: what changes nothing where the loaded value goes.

It is what the source of one function tells: 0 before a sum or a product of matrices, -inf before a maximum or exp.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, replace
from functools import lru_cache

from bragg.code.python_nodes import children, name_of, stored_names, walk
from bragg.debug.expressions import accesses_at, function_at

_LOWEST, _HIGHEST, _ZERO, _ONE = "-float('inf')", "float('inf')", "0", "1"

# What leaves the result of a function as it is.
_NEUTRAL = {
    **dict.fromkeys(("max", "argmax", "maximum", "softmax", "exp", "exp2"), _LOWEST),
    **dict.fromkeys(("min", "argmin", "minimum"), _HIGHEST),
    **dict.fromkeys(("sum", "cumsum", "dot", "xor_sum", "atomic_add"), _ZERO),
    **dict.fromkeys(("cumprod",), _ONE),
}
# Functions and methods whose result holds the values that they are given.
_CARRIERS = {"to", "cast", "reshape", "view", "trans", "permute", "expand_dims", "broadcast_to", "ravel", "split"}
# Those whose result such a value ends in, as it is.
_ENDS = {"store", "load", "where"}

_GENERAL = f"other=0 for a sum, other={_LOWEST} for a maximum or exp"


@dataclass(frozen=True)
class _Way:
    """How a value has come to a node.

    Attributes:
        is_direct: As it was loaded, but for what is added to it.
        is_absolute: Without its sign.
        is_changed: Something was computed of it.
    """

    is_direct: bool = True
    is_absolute: bool = False
    is_changed: bool = False


_Ends = list[tuple[ast.AST, _Way]]


def is_computed_with(file: str, line: int, tensor: str) -> bool:
    """The source says that a loaded value is more than moved; arguments are those of `filler_hint`."""
    ends = _ends(file, line, tensor) or []
    return any(way.is_changed for _, way in ends) or bool(_needs(ends))


@lru_cache(maxsize=1024)
def filler_hint(file: str, line: int, tensor: str, dtype: str) -> str:
    """What to do about lanes without a value.

    Args:
        file: Of the load.
        line: Of the load.
        tensor: Name of the parameter.
        dtype: Of its elements.
    """
    ends = _ends(file, line, tensor)
    give = "Give the load a value for these lanes"
    if ends is None:
        return f"{give} that leaves the result as it is: {_GENERAL}"
    needs = _needs(ends)
    if not needs:
        return f"{give}: other=0"
    values: dict[str, list[str]] = {}
    for name, (value, _) in needs.items():
        values.setdefault(_of_type(value, dtype), []).append(f"tl.{name}")
    if len(values) > 1:
        each = ", ".join(f"{value} before {' and '.join(names)}" for value, names in values.items())
        return f"Give these lanes the value that each use needs, with tl.where: {each}"
    ((value, names),) = values.items()
    uses = " and ".join(names)
    (load,) = accesses_at(file, line, "load", tensor)
    is_of_block = any(keyword.arg == "boundary_check" for keyword in load.keywords)
    if not all(is_direct for _, is_direct in needs.values()) or (is_of_block and value != _ZERO):
        return f"Give these lanes the value {value} before {uses}, with tl.where"
    filler = "padding_option='zero'" if is_of_block else f"other={value}"
    return f"{give}, which goes into {uses}: {filler}"


def _of_type(value: str, dtype: str) -> str:
    """Integers have no infinities."""
    if "int" not in dtype or value not in (_LOWEST, _HIGHEST):
        return value
    bits = int(dtype.split("int")[1])
    if dtype.startswith("u"):
        return _ZERO if value == _LOWEST else f"{2**bits - 1}"
    return f"{-(2 ** (bits - 1))}" if value == _LOWEST else f"{2 ** (bits - 1) - 1}"


def _needs(ends: _Ends) -> dict[str, tuple[str, bool]]:
    """For each function that a loaded value goes into: what changes nothing there, and whether it gets it as loaded.

    Empty: it is stored, or is an address.
    """
    needs: dict[str, tuple[str, bool]] = {}
    for stop, way in ends:
        if isinstance(stop, ast.Call) and (name := name_of(stop)) in _NEUTRAL:
            value = _ZERO if way.is_absolute and name in ("max", "maximum") else _NEUTRAL[name]
            needs[name] = value, way.is_direct or value == _ZERO
    return needs


@lru_cache(maxsize=1024)
def _ends(file: str, line: int, tensor: str) -> _Ends | None:
    """Calls and assignments that a loaded value goes into; None: the source does not tell."""
    calls, function = accesses_at(file, line, "load", tensor), function_at(file, line)
    if function is None or len(calls) != 1:
        return None
    load = calls[0]
    nodes = walk(function)
    parents = {child: node for node in nodes for child in children(node)}
    seen: set[str] = set()
    waiting: list[tuple[ast.AST, _Way]] = [(load, _Way())]
    ends: list[tuple[ast.AST, _Way]] = []
    for node, before in waiting:
        end = _climb(node, before, parents)
        if end is None:
            return None
        ends.append(end)
        stop, way = end
        for name in _targets(stop) - seen:
            seen.add(name)
            waiting += [(use, way) for use in nodes if _is_use(use, name, load.lineno)]
    return ends


def _climb(node: ast.AST, way: _Way, parents: dict[ast.AST, ast.AST]) -> tuple[ast.AST, _Way] | None:
    """The call or the assignment in which a value ends, and the way to it; None: it cannot be told."""
    while True:
        child, node = node, parents[node]
        if isinstance(node, ast.Call):
            name = name_of(node)
            if name in _NEUTRAL or name in _ENDS:
                return node, way
            if name == "abs":
                way = replace(way, is_absolute=True, is_changed=True)
            elif name not in _CARRIERS:
                return None
        elif isinstance(node, ast.BinOp):
            is_kept = isinstance(node.op, ast.Add) or (isinstance(node.op, ast.Sub) and child is node.left)
            way = replace(way, is_direct=way.is_direct and is_kept, is_changed=True)
        elif isinstance(node, ast.UnaryOp):
            way = replace(way, is_direct=False, is_changed=True)
        elif isinstance(node, ast.AugAssign):
            return node, replace(way, is_changed=True)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            return node, way
        elif not isinstance(node, ast.Attribute | ast.Subscript | ast.Compare | ast.keyword):
            return None


def _targets(node: ast.AST) -> set[str]:
    if isinstance(node, ast.Call):
        return set()
    return set(stored_names(walk(node)))


def _is_use(node: ast.AST, name: str, after: int) -> bool:
    is_name = isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load)
    return is_name and getattr(node, "lineno", 0) >= after
