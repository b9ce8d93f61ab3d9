"""What the source says of a memory access: the expressions of its address and its mask."""

from __future__ import annotations

import ast
import copy
import linecache
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeGuard

from bragg.debug.flow.nodes import walk

__all__ = [
    "AccessText",
    "Advance",
    "access_text",
    "advance_of",
    "arange_ends",
    "assigning_line",
    "changes_what_it_loads",
    "feeding",
    "feeds",
    "first_argument",
    "remainder_feeds_an_address",
]

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
        found = [
            call for call in found if call.args and tensor in _origins(file, line, _names(call.args[0]))[1]
        ] or found
    has_filler = bool(found) and all(_has_filler(call, _MASK[kind]) for call in found)
    if len(found) != 1:
        return AccessText(has_filler=has_filler)
    call, position = found[0], _MASK[kind]
    named = {keyword.arg: keyword.value for keyword in call.keywords}
    pointer = call.args[0] if call.args else named.get("pointer")
    mask = named.get("mask") or (call.args[position] if len(call.args) > position else None)
    text = "" if mask is None else _spelled_out(file, line, mask)
    if "boundary_check" in named:
        text = f"boundary_check={ast.unparse(named['boundary_check'])}"
    return AccessText("" if pointer is None else ast.unparse(pointer), text, has_filler)


@dataclass(frozen=True)
class Advance:
    """Where a name of a kernel is moved on, and by what: `b_ptrs += BK * stride_bk`."""

    line: int
    step: str


@lru_cache(maxsize=1024)
def advance_of(file: str, line: int, name: str) -> Advance | None:
    """The one statement that moves a name on in the function around a line; None: there is none, or several are."""
    moves = [node for node in walk(_function(file, line) or ast.Pass()) if _moves(node, name)]
    if len(moves) != 1:
        return None
    (node,) = moves
    value = node.value.right if isinstance(node.value, ast.BinOp) and isinstance(node, ast.Assign) else node.value
    return Advance(node.lineno, ast.unparse(value))


def _moves(node: ast.AST, name: str) -> TypeGuard[ast.AugAssign | ast.Assign]:
    """`name += step`, or `name = name + step`."""
    if isinstance(node, ast.AugAssign):
        return isinstance(node.target, ast.Name) and node.target.id == name and isinstance(node.op, ast.Add | ast.Sub)
    if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.BinOp):
        return False
    left = node.value.left
    return isinstance(left, ast.Name) and left.id == name and _assigned(node) == {name}


@lru_cache(maxsize=1024)
def first_argument(file: str, line: int, name: str) -> str:
    """What a function or method is given at a line; empty where the source does not tell."""
    calls = [node for node in _nodes(file) if isinstance(node, ast.Call) and _spans(node, line)]
    found = [call for call in calls if call.args and _name(call) == name]
    return ast.unparse(found[0].args[0]) if len(found) == 1 else ""


@lru_cache(maxsize=1024)
def changes_what_it_loads(file: str, line: int) -> bool:
    """The store at a line goes where loaded indices say, and its value comes from a load of the same address."""
    calls = [call for call in _calls(file) if call.args and _name(call) in ("load", "store")]
    stores = [call for call in calls if _name(call) == "store" and _spans(call, line)]
    if _function(file, line) is None or len(stores) != 1 or len(stores[0].args) == 1:
        return False

    def loads(value: ast.expr) -> list[str]:
        lines = _origins(file, line, _names(value))[0] | {line}
        return [ast.dump(call.args[0]) for call in calls if _name(call) == "load" and call.lineno in lines]

    address, value = stores[0].args[:2]
    place = ast.dump(address)
    return place in loads(value) and any(index != place for index in loads(address))


@lru_cache(maxsize=1024)
def remainder_feeds_an_address(file: str, line: int) -> bool:
    """The address of an access is computed from a `%` at the line, as the source of one function tells."""
    function = _function(file, line)
    calls = [node for node in walk(function or ast.Pass()) if isinstance(node, ast.Call) and _is_access(node)]
    addresses = [call.args[0] for call in calls if call.args]
    return any(_has_remainder(one, line) or line in _origins(file, one.lineno, _names(one))[0] for one in addresses)


def _has_remainder(address: ast.expr, line: int) -> bool:
    operations = (node for node in walk(address) if isinstance(node, ast.BinOp) and _spans(node, line))
    return any(isinstance(node.op, ast.Mod) for node in operations)


@lru_cache(maxsize=1024)
def arange_ends(file: str, line: int) -> list[ast.expr]:
    """Ends of the ranges of numbers that what stands at a line may be computed from."""
    lines = _feeding_lines(file, line)
    calls = [node for node in _nodes(file) if isinstance(node, ast.Call) and node.lineno in lines]
    return [call.args[1] for call in calls if _name(call) == "arange" and len(call.args) == 2]


def assigning_line(file: str, line: int, name: str) -> int:
    """The line within the loop at a line that alone assigns a name; the loop's own where there are several."""
    loops = [node for node in _nodes(file) if isinstance(node, ast.For | ast.While) and node.lineno == line]
    inside = [node for loop in loops for node in walk(loop) if isinstance(node, _ASSIGNMENTS)]
    found = [node.lineno for node in inside if name in _assigned(node)]
    return found[0] if len(found) == 1 else line


class _Conditions(ast.NodeTransformer):
    """Puts conditions in the place of names that are assigned once, above a line."""

    def __init__(self, function: ast.FunctionDef, line: int) -> None:
        made = [node for node in walk(function) if isinstance(node, _ASSIGNMENTS)]
        names = [name for node in made for name in _assigned(node)]
        self._values = {
            node.targets[0].id: node.value
            for node in made
            if isinstance(node, ast.Assign)
            and isinstance(node.targets[0], ast.Name)
            and _is_condition(node.value)
            and names.count(node.targets[0].id) == 1
            and node.lineno < line
        }

    def visit_Name(self, node: ast.Name) -> ast.expr:
        """Replace one."""
        value = self._values.get(node.id)
        return node if value is None else self.generic_visit(copy.deepcopy(value))  # type: ignore[return-value]


def _is_condition(node: ast.expr) -> bool:
    if isinstance(node, ast.BinOp):
        return isinstance(node.op, ast.BitAnd | ast.BitOr | ast.BitXor)
    if isinstance(node, ast.UnaryOp):
        return isinstance(node.op, ast.Invert | ast.Not)
    return isinstance(node, ast.Compare | ast.BoolOp)


# Longer masks are shown by their names.
_LONGEST = 100


def _spelled_out(file: str, line: int, mask: ast.expr) -> str:
    """A mask whose names are replaced by the conditions that they stand for: `i < n`, not `mask`."""
    function = _function(file, line)
    plain = ast.unparse(mask)
    if function is None or isinstance(mask, ast.Compare):
        return plain
    text = ast.unparse(_Conditions(function, line).visit(copy.deepcopy(mask)))
    return text if len(text) <= _LONGEST else plain


def _has_filler(call: ast.Call, position: int) -> bool:
    """Descriptors, which are given a list of offsets, have one by themselves."""
    is_descriptor = bool(call.args) and isinstance(call.args[0], ast.List)
    named = {keyword.arg for keyword in call.keywords}
    return is_descriptor or len(call.args) > position + 1 or bool({"other", "padding_option"} & named)


@lru_cache(maxsize=64)
def _calls(file: str) -> list[ast.Call]:
    return [node for node in _nodes(file) if isinstance(node, ast.Call) and _is_access(node)]


@lru_cache(maxsize=64)
def _functions(file: str) -> list[ast.FunctionDef]:
    return [node for node in _nodes(file) if isinstance(node, ast.FunctionDef)]


@lru_cache(maxsize=16)
def _nodes(file: str) -> list[ast.AST]:
    """All of a file, the upper ones first; nothing when its text cannot be read."""
    try:
        return walk(ast.parse("".join(linecache.getlines(file))))
    except SyntaxError:
        return []


def _is_access(call: ast.Call) -> bool:
    return _name(call) in ("load", "store") or _name(call).startswith("atomic_")


def _name(call: ast.Call) -> str:
    """Of the function or method."""
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def feeding(places: Sequence[tuple[str, int]], here: tuple[str, int]) -> list[tuple[str, int]]:
    """Those of some places (file, line) whose values may come to a place; all of them when the source does not tell."""
    lines = _feeding_lines(*here)
    return [place for place in places if place[0] == here[0] and place[1] in lines] or list(places)


def feeds(place: tuple[str, int], here: tuple[str, int]) -> bool:
    """A value of a place (file, line) may come to another one, as the source of one function tells."""
    return place[0] == here[0] and place[1] in _feeding_lines(*here)


@lru_cache(maxsize=1024)
def _feeding_lines(file: str, line: int) -> frozenset[int]:
    """Lines of the function around a line whose values may come to it, its own included; empty when it is not known."""
    function = _function(file, line)
    if function is None:
        return frozenset()
    here = [node for node in walk(function) if isinstance(node, ast.Name) and node.lineno == line]
    whole = [node for node in walk(function) if isinstance(node, _SIMPLE) and _spans(node, line)]
    return _origins(file, line, frozenset(node.id for node in here).union(*map(_names, whole)))[0] | {line}


@lru_cache(maxsize=1024)
def _origins(file: str, line: int, names: frozenset[str]) -> tuple[frozenset[int], frozenset[str]]:
    """Lines of the function around a line from which names get their values, and all names that take part."""
    function = _function(file, line)
    statements = [node for node in walk(function or ast.Pass()) if isinstance(node, _ASSIGNMENTS)]
    feeding = [node for node in statements if names & _assigned(node)]
    lines = frozenset(number for node in feeding for number in range(node.lineno, (node.end_lineno or node.lineno) + 1))
    together = names.union(*map(_names, feeding))
    return (lines, names) if together == names else _origins(file, line, together)


_ASSIGNMENTS = (ast.Assign, ast.AugAssign, ast.AnnAssign)
_SIMPLE = (*_ASSIGNMENTS, ast.Expr, ast.Return)


def _function(file: str, line: int) -> ast.FunctionDef | None:
    """The innermost function around a line."""
    around = [node for node in _functions(file) if _spans(node, line)]
    return around[-1] if around else None


def _spans(node: ast.stmt | ast.expr, line: int) -> bool:
    return node.lineno <= line <= (node.end_lineno or node.lineno)


def _names(node: ast.AST) -> frozenset[str]:
    return frozenset(part.id for part in walk(node) if isinstance(part, ast.Name))


def _assigned(node: ast.stmt) -> set[str]:
    return {part.id for part in walk(node) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)}
