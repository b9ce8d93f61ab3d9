"""What becomes of a value that a statement of the program computes, by its text."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Collection

from bragg.analyze.causes.text.program_text import FileText, call_name, names_set
from bragg.analyze.causes.text.text_calls import argument, makers_of_called
from bragg.code.python_nodes import walk

_LAYERS_OF_ROWS = {
    *("Linear", "LayerNorm", "RMSNorm", "GELU", "ReLU", "SiLU", "Tanh", "Sigmoid", "LeakyReLU", "ELU", "Softplus"),
    *("Dropout", "Identity"),
}
PartTest = Callable[[FileText, ast.AST], bool]

_OF_ELEMENTS = {
    *("float", "half", "bfloat16", "double", "to", "type", "type_as", "contiguous"),
    *("mul", "div", "add", "sub", "clamp"),
    *("relu", "gelu", "silu", "elu", "leaky_relu", "softplus", "tanh", "sigmoid", "logsigmoid", "exp", "log", "sqrt"),
}


def use_of(file: FileText, statement: ast.stmt, is_meant: PartTest, *, by_rows: bool = False) -> str:
    """What becomes of a value that a statement computes: a `part` of it is taken, it is `returned`, or neither.

    Args:
        file: With the statement.
        statement: It computes the value.
        is_meant: Whether an expression takes a part.
        by_rows: Whether it may be taken of what is computed from each row of the value alone.
    """
    if isinstance(statement, ast.Return):
        if statement.value is not None and is_meant(file, statement.value):
            return "part"
        return "returned" if _is_call_or_name(statement.value) else ""
    if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
        if is_meant(file, statement.value):
            return "part"
        uses = {_use_at(file, each, is_meant, by_rows) for each in _loads(file, statement)}
        return uses.pop() if len(uses) == 1 else ""
    is_part = (is_meant(file, each) for each in walk(statement) if _is_of_call(each))
    return "part" if any(is_part) else ""


def is_only_for(file: FileText, statement: ast.stmt, values: Collection[ast.expr], is_meant: PartTest) -> bool:
    """Whether a value of a statement is read for one thing alone, where it stands or as the variable that it sets.

    Args:
        file: With the statement.
        statement: It computes the values.
        values: Calls in it.
        is_meant: Whether what is around a value reads it for that.
    """
    if any(is_meant(file, file.parents[each]) for each in values):
        return True
    is_kept = isinstance(statement, ast.Assign) and statement.value in values
    return is_kept and use_of(file, statement, is_meant) == "part"


def computed_by_rows(file: FileText, statement: ast.stmt) -> list[ast.stmt]:
    """Later statements of a function that compute something from each row of a statement's value alone."""
    found: list[ast.stmt] = []
    for load in _loads(file, statement):
        above = file.parents[_by_rows(file, load)[-1]]
        if isinstance(above, (ast.Assign, ast.Return)) and not isinstance(above.value, ast.Name):
            found += [above, *computed_by_rows(file, above)]
    return found


def _use_at(file: FileText, load: ast.Name, is_meant: PartTest, by_rows: bool) -> str:
    """The use of a variable where it is read."""
    around = _by_rows(file, load) if by_rows else [load]
    if any(is_meant(file, file.parents[each]) for each in around):
        return "part"
    above = file.parents[around[-1]]
    if isinstance(above, ast.Return):
        is_handed = any(isinstance(each, ast.Call) and _maps_rows(file, each) for each in around)
        return "" if is_handed else "returned"  # to layers of the same function, which may be one of many blocks
    return use_of(file, above, is_meant, by_rows=True) if by_rows and isinstance(above, ast.Assign) else ""


def _loads(file: FileText, statement: ast.stmt) -> list[ast.Name]:
    """Where a function reads the variable that a statement sets, other than for its shape or type."""
    target = statement.targets[0] if isinstance(statement, ast.Assign) else None
    if not isinstance(target, ast.Name):
        return []
    until, function = _set_again(file, target.id, statement), file.function_of(statement)
    return [
        each
        for each in walk(function)
        if isinstance(each, ast.Name)
        and (not isinstance(function, ast.Module) or file.function_of(each) is function)
        and each.id == target.id
        and isinstance(each.ctx, ast.Load)
        and (statement.end_lineno or statement.lineno) < each.lineno <= until
        and getattr(file.parents[each], "attr", "") not in ("shape", "dtype", "device")
    ]


def _by_rows(file: FileText, value: ast.expr) -> list[ast.expr]:
    """A value and the expressions around it that are computed from each of its rows alone, the innermost first."""
    above = file.parents[value]
    if isinstance(above, ast.Attribute) and isinstance(call := file.parents[above], ast.Call) and call.func is above:
        return [value, *(_by_rows(file, call) if _is_of_rows(call, 0) else ())]
    if isinstance(above, ast.Call) and above.args[:1] == [value] and (_is_of_rows(above, 1) or _maps_rows(file, above)):
        return [value, *_by_rows(file, above)]
    if isinstance(above, ast.BinOp) and not isinstance(above.op, ast.MatMult):
        return [value, *_by_rows(file, above)]
    return [value]


def _is_of_rows(call: ast.Call, position: int) -> bool:
    """Whether a call computes element by element, or along the last dimension of what stands before `position`."""
    if call_name(call) in _OF_ELEMENTS:
        return True
    dim = argument(call, "dim", position)
    return call_name(call) in ("softmax", "log_softmax", "normalize") and dim is not None and ast.unparse(dim) == "-1"


def _maps_rows(file: FileText, call: ast.Call) -> bool:
    """Whether a call is of layers that compute each row alone."""
    made = makers_of_called(file, call)
    return bool(made) and all(map(_is_layer_of_rows, made))


def _is_layer_of_rows(made: ast.expr) -> bool:
    if isinstance(made, ast.Call) and call_name(made) == "Sequential":
        return bool(made.args) and all(map(_is_layer_of_rows, made.args))
    return isinstance(made, ast.Call) and call_name(made) in _LAYERS_OF_ROWS


def _set_again(file: FileText, name: str, statement: ast.stmt) -> float:
    """The last line that reads what a statement sets: where its block sets the variable again; infinite: none does."""
    above = file.parents[statement]
    for block in (getattr(above, each, None) for each in ("body", "orelse", "finalbody")):
        for each in block[block.index(statement) + 1 :] if isinstance(block, list) and statement in block else ():
            if isinstance(each, ast.Assign) and name in names_set(each):
                return each.end_lineno or each.lineno
    return math.inf


def _is_call_or_name(value: ast.expr | None) -> bool:
    while isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr in ("float", "to"):
        value = value.func.value
    return isinstance(value, (ast.Call, ast.Name))


def _is_of_call(part: ast.AST) -> bool:
    """Whether it is a part of what a call returns: `net(x)[:, -1]`."""
    while isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute):
        part = part.func.value
    return isinstance(part, ast.Subscript) and isinstance(part.value, ast.Call)
