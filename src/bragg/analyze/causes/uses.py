"""What becomes of a value that a statement of the program computes, by its text."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable

from bragg.analyze.causes.program_text import FileText, names_set

__all__ = ["PartTest", "use_of"]

PartTest = Callable[[FileText, ast.AST], bool]


def use_of(file: FileText, statement: ast.stmt, is_meant: PartTest) -> str:
    """What becomes of a value that a statement computes: a `part` of it is taken, it is `returned`, or neither."""
    if isinstance(statement, ast.Return):
        if statement.value is not None and is_meant(file, statement.value):
            return "part"
        return "returned" if _is_call_or_name(statement.value) else ""
    if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
        if is_meant(file, statement.value):
            return "part"
        return _uses(file, statement.targets[0].id, statement, is_meant)
    is_part = (is_meant(file, each) for each in ast.walk(statement) if _is_of_call(each))
    return "part" if any(is_part) else ""


def _uses(file: FileText, name: str, statement: ast.stmt, is_meant: PartTest) -> str:
    """How a function uses a variable after a statement that sets it: as a `part`, `returned`, or in other ways."""
    until = _set_again(file, name, statement)
    loads = [
        each
        for each in ast.walk(file.function_of(statement))
        if isinstance(each, ast.Name)
        and each.id == name
        and isinstance(each.ctx, ast.Load)
        and (statement.end_lineno or statement.lineno) < each.lineno <= until
    ]
    if loads and all(is_meant(file, file.parents[each]) for each in loads):
        return "part"
    return "returned" if loads and all(isinstance(file.parents[each], ast.Return) for each in loads) else ""


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
