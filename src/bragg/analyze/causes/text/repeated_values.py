"""Values that repeat others, by the text of the program."""

from __future__ import annotations

import ast

from bragg.analyze.causes.text.program_text import FileText, call_name
from bragg.analyze.causes.text.text_calls import argument

_SHAPES = ("reshape", "view", "flatten", "contiguous", "to", "float")
_MAX_STEPS = 8


def made_by(file: FileText, value: ast.expr) -> ast.expr:
    """What a variable is set to before a value is read of it; the value itself where that is not clear."""
    for _ in range(_MAX_STEPS):
        function = file.function_of(value)
        if not isinstance(value, ast.Name) or not file.sets(value.id, function):
            break
        made = file.assigned(value.id, function)
        if any(each.lineno >= value.lineno for each in made):  # a loop may come back with another one
            break
        value = max(made, key=lambda each: each.lineno)
    return value


def is_copied(file: FileText, value: ast.expr) -> bool:
    """Whether it is `x.expand(n, -1)`, `x.repeat(n, 1)` or the like."""
    return call_name(_call(made_by(file, value))) in ("expand", "expand_as", "broadcast_to", "repeat_interleave") or (
        _is_repeated(made_by(file, value), 0)
    )


def repeats_rows(file: FileText, value: ast.expr) -> bool:
    """Whether rows are repeated: `x.repeat_interleave(n, 0)`, `x[:, None].expand(-1, n, 9).flatten(0, 1)`."""
    merges = False
    for _ in range(_MAX_STEPS):
        call = _call(made_by(file, value))
        name = call_name(call)
        if name == "repeat_interleave":
            dim = argument(call, "dim", len(call.args) - 1 if len(call.args) > 1 else -1)
            return isinstance(dim, ast.Constant) and dim.value == 0
        if name in ("repeat", "tile"):
            return _is_repeated(call, 1 if merges else 0)
        if name in ("expand", "expand_as"):
            return merges
        if name not in _SHAPES or not isinstance(call.func, ast.Attribute):
            return False
        merges = merges or _merges(call)
        value = call.func.value
    return False


def _call(value: ast.expr) -> ast.Call:
    return value if isinstance(value, ast.Call) else ast.Call(func=value, args=[], keywords=[])


def _is_repeated(value: ast.expr, at: int) -> bool:
    """Whether it repeats along a dimension: `x.repeat(n, 1)` along the first."""
    if not isinstance(value, ast.Call) or call_name(value) not in ("repeat", "tile") or len(value.args) <= at:
        return False
    times = value.args[at]
    return not (isinstance(times, ast.Constant) and times.value == 1)


def _merges(call: ast.Call) -> bool:
    """Whether it makes the first two dimensions one: `flatten(0, 1)`, `reshape(-1, width)`, `view(n * m, width)`."""
    first = call.args[0] if call.args else None
    if call_name(call) == "flatten":
        return isinstance(first, ast.Constant) and first.value == 0 and len(call.args) > 1
    is_number = isinstance(first, ast.UnaryOp) or (isinstance(first, ast.BinOp) and isinstance(first.op, ast.Mult))
    return call_name(call) in ("reshape", "view") and is_number
