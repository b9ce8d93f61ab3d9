"""What the source says of a memory access: the expressions of its address and its mask."""

from __future__ import annotations

import ast
import linecache
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

__all__ = ["AccessText", "access_text", "feeding"]

# Position of the mask among the arguments.
_MASK = {"load": 1, "store": 2, "atomic": 2}


@dataclass(frozen=True)
class AccessText:
    """Expressions of one access; empty where the source does not tell.

    Attributes:
        address: Of the pointers.
        mask: Of the mask, or the boundary check of a block pointer; empty: none.
        has_filler: Lanes that are masked off get a value, in every access of the line that it may be.
    """

    address: str = ""
    mask: str = ""
    has_filler: bool = False


@lru_cache(maxsize=1024)
def access_text(file: str, line: int, kind: str, tensor: str) -> AccessText:
    """The expressions of the access at a line.

    Args:
        file: The file.
        line: The line.
        kind: `load`, `store` or `atomic`.
        tensor: Name of the parameter; chooses among several accesses of a line.
    """
    found = [
        call
        for call in _calls(file)
        if call.lineno <= line <= (call.end_lineno or call.lineno) and kind in ast.unparse(call.func)
    ]
    if len(found) > 1:
        found = [call for call in found if call.args and _mentions(call.args[0], tensor)] or found
    has_filler = bool(found) and all(_has_filler(call, _MASK[kind]) for call in found)
    if len(found) != 1:
        return AccessText(has_filler=has_filler)
    call, position = found[0], _MASK[kind]
    named = {keyword.arg: keyword.value for keyword in call.keywords}
    pointer = call.args[0] if call.args else named.get("pointer")
    mask = named.get("mask") or (call.args[position] if len(call.args) > position else None)
    text = "" if mask is None else ast.unparse(mask)
    if "boundary_check" in named:
        text = f"boundary_check={ast.unparse(named['boundary_check'])}"
    return AccessText("" if pointer is None else ast.unparse(pointer), text, has_filler)


def _has_filler(call: ast.Call, position: int) -> bool:
    """Descriptors, which are given a list of offsets, have one by themselves."""
    is_descriptor = bool(call.args) and isinstance(call.args[0], ast.List)
    named = {keyword.arg for keyword in call.keywords}
    return is_descriptor or len(call.args) > position + 1 or bool({"other", "padding_option"} & named)


@lru_cache(maxsize=64)
def _calls(file: str) -> list[ast.Call]:
    return [node for node in ast.walk(_tree(file)) if isinstance(node, ast.Call) and _is_access(node)]


@lru_cache(maxsize=16)
def _tree(file: str) -> ast.Module:
    """A file; an empty one when its text cannot be read."""
    try:
        return ast.parse("".join(linecache.getlines(file)))
    except SyntaxError:
        return ast.Module([], [])


def _is_access(call: ast.Call) -> bool:
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    return name in ("load", "store") or name.startswith("atomic_")


def _mentions(expression: ast.expr, name: str) -> bool:
    return any(isinstance(node, ast.Name) and node.id == name for node in ast.walk(expression))


def feeding(places: Sequence[tuple[str, int]], here: tuple[str, int]) -> list[tuple[str, int]]:
    """Those of some places (file, line) whose values may come to a place; all of them when the source does not tell."""
    lines = _feeding_lines(*here)
    return [place for place in places if place[0] == here[0] and place[1] in lines] or list(places)


@lru_cache(maxsize=1024)
def _feeding_lines(file: str, line: int) -> frozenset[int]:
    """Lines of the function around a line whose values may come to it, its own included; empty when it is not known."""
    around = [
        node
        for node in ast.walk(_tree(file))
        if isinstance(node, ast.FunctionDef) and node.lineno <= line <= (node.end_lineno or 0)
    ]
    if not around:
        return frozenset()
    statements = [node for node in ast.walk(around[-1]) if isinstance(node, ast.Assign | ast.AugAssign | ast.AnnAssign)]
    found = set(range(line, line + 1))
    names = {node.id for node in ast.walk(around[-1]) if isinstance(node, ast.Name) and node.lineno == line}
    size = -1
    while size != len(found):
        size = len(found)
        for statement in statements:
            if names & _assigned(statement):
                found |= set(range(statement.lineno, (statement.end_lineno or statement.lineno) + 1))
                names |= {node.id for node in ast.walk(statement) if isinstance(node, ast.Name)}
    return frozenset(found)


def _assigned(statement: ast.stmt) -> set[str]:
    return {node.id for node in ast.walk(statement) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
