"""What the source says of a memory access: the expressions of its address and its mask."""

from __future__ import annotations

import ast
import copy
import linecache
import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from bragg.code.python_nodes import name_of, spans, stored_names, walk
from bragg.debug.state import machine
from bragg.debug.values import Tensor

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
    found, position = accesses_at(file, line, kind, tensor), _MASK[kind]
    has_filler = bool(found) and all(_has_filler(call, position) for call in found)
    if len(found) != 1:
        return AccessText(has_filler=has_filler)
    call, pointer, mask = found[0], pointer_of(found[0]), _mask_of(found[0], position)
    text = "" if mask is None else _spelled_out(file, line, mask)
    check = next((one.value for one in call.keywords if one.arg == "boundary_check"), None)
    if check is not None:
        text = f"boundary_check={ast.unparse(check)}"
    return AccessText("" if pointer is None else _spelled_address(file, line, pointer, tensor), text, has_filler)


def accesses_at(file: str, line: int, kind: str, tensor: str) -> list[ast.Call]:
    """Those of a line that may be the one of a kind to a tensor; arguments are those of `access_text`."""
    found = [call for call in _calls(file) if spans(call, line) and kind in ast.unparse(call.func)]
    if len(found) < 2:
        return found
    return [call for call in found if call.args and tensor in _origins(file, line, _names(call.args[0]))[1]] or found


def pointer_of(call: ast.Call) -> ast.expr | None:
    """What an access is given as its pointer; None: nothing."""
    named = {keyword.arg: keyword.value for keyword in call.keywords}
    return call.args[0] if call.args else named.get("pointer")


def _mask_of(call: ast.Call, position: int) -> ast.expr | None:
    named = {keyword.arg: keyword.value for keyword in call.keywords}
    return named.get("mask") or (call.args[position] if len(call.args) > position else None)


def mask_shape(file: str, line: int, kind: str, tensor: str, names: Mapping[str, Any]) -> tuple[int, ...] | None:
    """The shape of the mask of an access before it is broadcast; None: its text does not tell.

    Args:
        file: The file.
        line: The line.
        kind: `load`, `store` or `atomic`.
        tensor: Name of the parameter.
        names: What names hold at the line.
    """
    found = accesses_at(file, line, kind, tensor)
    mask = _mask_of(found[0], _MASK[kind]) if len(found) == 1 else None
    return None if mask is None else _shape_of(mask, names)


def _shape_of(node: ast.expr, names: Mapping[str, Any]) -> tuple[int, ...] | None:
    if isinstance(node, ast.Name):
        value = names.get(node.id)
        return tuple(value.shape) if isinstance(value, Tensor) else ()
    if isinstance(node, ast.Constant):
        return ()
    if isinstance(node, ast.Subscript):
        return _indexed(_shape_of(node.value, names), node.slice)
    parts = _OPERANDS[type(node)](node) if type(node) in _OPERANDS else [None]
    shapes = [None if part is None else _shape_of(part, names) for part in parts]
    known = [shape for shape in shapes if shape is not None]
    rank = max(map(len, known), default=0)
    lifted = [(1,) * (rank - len(shape)) + shape for shape in known]
    return tuple(map(max, zip(*lifted, strict=True))) if len(known) == len(shapes) else None


# Expressions that are as large as their operands together.
_OPERANDS: dict[type, Any] = {
    ast.BinOp: lambda node: [node.left, node.right],
    ast.BoolOp: lambda node: node.values,
    ast.UnaryOp: lambda node: [node.operand],
    ast.Compare: lambda node: [node.left, *node.comparators],
}


def _indexed(shape: tuple[int, ...] | None, index: ast.expr) -> tuple[int, ...] | None:
    """The shape of `x[:, None]` and the like."""
    axes = index.elts if isinstance(index, ast.Tuple) else [index]
    if shape is None or sum(isinstance(axis, ast.Slice) for axis in axes) != len(shape):
        return None
    extents = iter(shape)
    return tuple(next(extents) if isinstance(axis, ast.Slice) else 1 for axis in axes)


@dataclass(frozen=True)
class Step:
    """What a loop adds to a pointer in each of its turns.

    Attributes:
        text: The statement.
        line: Its line.
        name: Of the pointer.
        start: What it is before the loop.
        amount: What is added.
        loop: The loop around.
    """

    text: str
    line: int
    name: str
    start: ast.expr
    amount: ast.expr
    loop: ast.For | ast.While

    def after_turns(self, line: int) -> ast.expr | None:
        """What the pointer is at a line of the loop, by the loop's own name; None: it counts no turns."""
        turns = _turns(self.loop, self.amount)
        if turns is None:
            return None
        moved = turns if self.line >= line else ast.BinOp(turns, ast.Add(), self.amount)
        return ast.BinOp(self.start, ast.Add(), moved)


def _turns(loop: ast.For | ast.While, amount: ast.expr) -> ast.expr | None:
    """What all turns before the one under way have added."""
    if not isinstance(loop, ast.For) or not isinstance(loop.target, ast.Name) or not isinstance(loop.iter, ast.Call):
        return None
    limits = loop.iter.args
    starts_at_0 = len(limits) == 1 or (bool(limits) and ast.unparse(limits[0]) == "0")
    if not starts_at_0:
        return None
    number = ast.Name(loop.target.id, ast.Load())
    if len(limits) < 3:
        return ast.BinOp(number, ast.Mult(), amount)
    if ast.unparse(limits[2]) == ast.unparse(amount):
        return number
    return ast.BinOp(ast.BinOp(number, ast.FloorDiv(), limits[2]), ast.Mult(), amount)


@lru_cache(maxsize=1024)
def pointer_step(file: str, line: int, kind: str, tensor: str) -> Step | None:
    """What the loop around an access adds to its pointer; arguments are those of `access_text`; None: not known."""
    found = accesses_at(file, line, kind, tensor)
    pointer = pointer_of(found[0]) if len(found) == 1 else None
    names = [] if pointer is None else sorted(_names(pointer))
    return next((step for name in names if (step := _step_of(file, line, name)) is not None), None)


def _step_of(file: str, line: int, name: str) -> Step | None:
    """Of a name that is set once before a loop around a line, and added to once in it."""
    function = function_at(file, line)
    made = [node for node in walk(function or ast.Pass()) if isinstance(node, _ASSIGNMENTS) and name in _assigned(node)]
    loops = [one for one in walk(function or ast.Pass()) if isinstance(one, ast.For | ast.While) and spans(one, line)]
    around = [loop for loop in loops if len(made) == 2 and made[1] in loop.body and made[0].lineno < loop.lineno]
    if not around or not isinstance(made[0], ast.Assign) or not isinstance(made[0].targets[0], ast.Name):
        return None
    amount = _added(made[1], name)
    if amount is None:
        return None
    return Step(ast.unparse(made[1]), made[1].lineno, name, made[0].value, amount, around[-1])


def _added(statement: ast.stmt, name: str) -> ast.expr | None:
    """What a statement adds to a name; None: it does something else."""
    if isinstance(statement, ast.AugAssign):
        return statement.value if isinstance(statement.op, ast.Add) else None
    value = statement.value if isinstance(statement, ast.Assign) else None
    if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Add) and ast.unparse(value.left) == name:
        return value.right
    return None


@lru_cache(maxsize=1024)
def loop_names(file: str, line: int) -> tuple[str, ...]:
    """What the loops around a line count by, the outer ones first."""
    function = function_at(file, line)
    loops = [one for one in walk(function or ast.Pass()) if isinstance(one, ast.For) and spans(one, line)]
    return tuple(one.target.id for one in loops if isinstance(one.target, ast.Name) and one.lineno < line)


_ARITHMETIC = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.FloorDiv: operator.floordiv}


def number_of(node: ast.expr, names: Mapping[str, Any], row: int | None = None) -> int | None:
    """The integer that an expression of names and numbers stands for; None: it is none.

    Args:
        node: The expression.
        names: What the names hold.
        row: Position, among the active programs, of the one whose values count; None: all programs have one value.
    """
    if isinstance(node, ast.BinOp) and type(node.op) in _ARITHMETIC:
        left, right = number_of(node.left, names, row), number_of(node.right, names, row)
        is_whole = left is not None and right is not None and (right > 0 or not isinstance(node.op, ast.FloorDiv))
        return _ARITHMETIC[type(node.op)](left, right) if is_whole else None
    value = names.get(node.id) if isinstance(node, ast.Name) else getattr(node, "value", None)
    if isinstance(value, Tensor) and not value.shape and value.dtype.is_int():
        data = value.data
        if row is not None:
            place = _place(row, len(data))
            return None if place is None else int(data[place])
        return int(data[0]) if (data == data[0]).all() else None
    return value if isinstance(value, int) else None


def _place(row: int, length: int) -> int | None:
    """Where a program has its value: names from before programs parted hold those of the whole batch; None: unknown."""
    now = machine()
    if length in (1, len(now.rows)):
        return 0 if length == 1 else row
    return int(now.rows[row]) if length == len(now.linear) else None


@lru_cache(maxsize=1024)
def first_argument(file: str, line: int, name: str) -> str:
    """What a function or method is given at a line; empty where the source does not tell."""
    calls = [node for node in _nodes(file) if isinstance(node, ast.Call) and spans(node, line)]
    found = [call for call in calls if call.args and name_of(call) == name]
    return ast.unparse(found[0].args[0]) if len(found) == 1 else ""


@lru_cache(maxsize=1024)
def indexed_at(file: str, line: int) -> tuple[str, str]:
    """What is indexed at a line, and by what; empty: not one value alone."""
    nodes = [node for node in _nodes(file) if isinstance(node, ast.Subscript) and spans(node, line)]
    if len(nodes) != 1 or isinstance(nodes[0].slice, ast.Slice | ast.Tuple):
        return "", ""
    return ast.unparse(nodes[0].value), ast.unparse(nodes[0].slice)


def casts_at(file: str, line: int) -> list[ast.Call]:
    """The conversions at a line: `x.to(tl.float16)`."""
    calls = (node for node in _nodes(file) if isinstance(node, ast.Call) and spans(node, line))
    return [call for call in calls if name_of(call) == "to"]


def differences_at(file: str, line: int) -> list[tuple[ast.expr, ast.expr]]:
    """Both sides of each subtraction at a line."""
    nodes = [node for node in _nodes(file) if isinstance(node, ast.BinOp) and spans(node, line)]
    return [(node.left, node.right) for node in nodes if isinstance(node.op, ast.Sub)]


@lru_cache(maxsize=1024)
def changes_what_it_loads(file: str, line: int) -> bool:
    """The store at a line goes where loaded indices say, and its value comes from a load of the same address."""
    calls = [call for call in _calls(file) if call.args and name_of(call) in ("load", "store")]
    stores = [call for call in calls if name_of(call) == "store" and spans(call, line)]
    if function_at(file, line) is None or len(stores) != 1 or len(stores[0].args) == 1:
        return False

    def loads(value: ast.expr) -> list[str]:
        lines = _origins(file, line, _names(value))[0] | {line}
        return [ast.dump(call.args[0]) for call in calls if name_of(call) == "load" and call.lineno in lines]

    address, value = stores[0].args[:2]
    place = ast.dump(address)
    return place in loads(value) and any(index != place for index in loads(address))


@lru_cache(maxsize=1024)
def remainder_feeds_an_address(file: str, line: int) -> bool:
    """The address of an access is computed from a `%` at the line, as the source of one function tells."""
    function = function_at(file, line)
    calls = [node for node in walk(function or ast.Pass()) if isinstance(node, ast.Call) and _is_access(node)]
    addresses = [call.args[0] for call in calls if call.args]
    return any(_has_remainder(one, line) or line in _origins(file, one.lineno, _names(one))[0] for one in addresses)


def _has_remainder(address: ast.expr, line: int) -> bool:
    operations = (node for node in walk(address) if isinstance(node, ast.BinOp) and spans(node, line))
    return any(isinstance(node.op, ast.Mod) for node in operations)


@lru_cache(maxsize=1024)
def arange_ends(file: str, line: int) -> list[ast.expr]:
    """Ends of the ranges of numbers that what stands at a line may be computed from."""
    lines = _feeding_lines(file, line)
    calls = [node for node in _nodes(file) if isinstance(node, ast.Call) and node.lineno in lines]
    return [call.args[1] for call in calls if name_of(call) == "arange" and len(call.args) == 2]


def assigning_line(file: str, line: int, name: str) -> int:
    """The line within the loop at a line that alone assigns a name; the loop's own where there are several."""
    loops = [node for node in _nodes(file) if isinstance(node, ast.For | ast.While) and node.lineno == line]
    inside = [node for loop in loops for node in walk(loop) if isinstance(node, _ASSIGNMENTS)]
    found = [node.lineno for node in inside if name in _assigned(node)]
    return found[0] if len(found) == 1 else line


class _Replaced(ast.NodeTransformer):
    """Puts values in the place of names; a name in its own value, as in `x = x + i`, is what it was before."""

    def __init__(self, values: Mapping[str, ast.expr]) -> None:
        self._values = dict(values)

    def visit_Name(self, node: ast.Name) -> ast.expr:
        """Replace one."""
        value = self._values.pop(node.id, None)
        if value is None:
            return node
        replaced: ast.expr = self.visit(copy.deepcopy(value))
        self._values[node.id] = value
        return replaced


def _conditions(function: ast.FunctionDef, line: int) -> dict[str, ast.expr]:
    """Those that names stand for which are assigned once, above a line."""
    return {name: value for name, value in _assigned_once(function, line).items() if _is_condition(value)}


def _assigned_once(function: ast.FunctionDef, line: int) -> dict[str, ast.expr]:
    made = [node for node in walk(function) if isinstance(node, _ASSIGNMENTS)]
    names = [name for node in made for name in _assigned(node)]
    return {
        node.targets[0].id: node.value
        for node in made
        if isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Name)
        and names.count(node.targets[0].id) == 1
        and node.lineno < line
    }


def _is_condition(node: ast.expr) -> bool:
    if isinstance(node, ast.BinOp):
        return isinstance(node.op, ast.BitAnd | ast.BitOr | ast.BitXor)
    if isinstance(node, ast.UnaryOp):
        return isinstance(node.op, ast.Invert | ast.Not)
    return isinstance(node, ast.Compare | ast.BoolOp)


# Longer masks and addresses are shown by their names.
_LONGEST = 100
_LONGEST_ADDRESS = 160


def _spelled_out(file: str, line: int, mask: ast.expr) -> str:
    """A mask whose names are replaced by the conditions that they stand for: `i < n`, not `mask`."""
    function = function_at(file, line)
    plain = ast.unparse(mask)
    if function is None or isinstance(mask, ast.Compare):
        return plain
    text = ast.unparse(_Replaced(_conditions(function, line)).visit(copy.deepcopy(mask)))
    return text if len(text) <= _LONGEST else plain


def _spelled_address(file: str, line: int, pointer: ast.expr, tensor: str) -> str:
    """An address whose pointers are replaced by what they are made of: `x + row * stride`, not `x_row`."""
    function = function_at(file, line)
    plain = ast.unparse(pointer)
    if function is None:
        return plain
    values: dict[str, ast.expr] = {
        name: value
        for name, value in _assigned_once(function, line).items()
        if isinstance(value, ast.BinOp | ast.Name) and tensor in _origins(file, line, frozenset({name}))[1]
    }
    for name in _names(pointer):
        step = _step_of(file, line, name)
        moved = None if step is None else step.after_turns(line)
        if moved is not None and tensor in _origins(file, line, frozenset({name}))[1]:
            values[name] = moved
    text = ast.unparse(ast.fix_missing_locations(_Replaced(values).visit(copy.deepcopy(pointer))))
    return text if len(text) <= _LONGEST_ADDRESS else plain


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
    return name_of(call) in ("load", "store") or name_of(call).startswith("atomic_")


def feeding(places: Sequence[tuple[str, int]], here: tuple[str, int]) -> list[tuple[str, int]]:
    """Those of some places (file, line) whose values may come to a place; all of them when the source does not tell."""
    lines = _feeding_lines(*here)
    return [place for place in places if place[0] == here[0] and place[1] in lines] or list(places)


def feeds(place: tuple[str, int], here: tuple[str, int]) -> bool:
    """A value of a place (file, line) may come to another one, as the source of one function tells."""
    return place[0] == here[0] and place[1] in _feeding_lines(*here)


def comes_before(place: tuple[str, int], here: tuple[str, int]) -> bool:
    """A place (file, line) stands above another one in the same function."""
    (file, line), (other_file, other_line) = place, here
    return file == other_file and line < other_line and function_at(*place) is function_at(*here) is not None


@lru_cache(maxsize=1024)
def _feeding_lines(file: str, line: int) -> frozenset[int]:
    """Lines of the function around a line whose values may come to it, its own included; empty when it is not known."""
    function = function_at(file, line)
    if function is None:
        return frozenset()
    here = [node for node in walk(function) if isinstance(node, ast.Name) and node.lineno == line]
    whole = [node for node in walk(function) if isinstance(node, _SIMPLE) and spans(node, line)]
    return _origins(file, line, frozenset(node.id for node in here).union(*map(_names, whole)))[0] | {line}


@lru_cache(maxsize=1024)
def _origins(file: str, line: int, names: frozenset[str]) -> tuple[frozenset[int], frozenset[str]]:
    """Lines of the function around a line from which names get their values, and all names that take part."""
    function = function_at(file, line)
    statements = [node for node in walk(function or ast.Pass()) if isinstance(node, _ASSIGNMENTS)]
    feeding = [node for node in statements if names & _assigned(node)]
    lines = frozenset(number for node in feeding for number in range(node.lineno, (node.end_lineno or node.lineno) + 1))
    together = names.union(*map(_names, feeding))
    return (lines, names) if together == names else _origins(file, line, together)


_ASSIGNMENTS = (ast.Assign, ast.AugAssign, ast.AnnAssign)
_SIMPLE = (*_ASSIGNMENTS, ast.Expr, ast.Return)


def function_at(file: str, line: int) -> ast.FunctionDef | None:
    """The innermost function around a line."""
    around = [node for node in _functions(file) if spans(node, line)]
    return around[-1] if around else None


def _names(node: ast.AST) -> frozenset[str]:
    return frozenset(part.id for part in walk(node) if isinstance(part, ast.Name))


def _assigned(node: ast.stmt) -> set[str]:
    return set(stored_names(walk(node)))
