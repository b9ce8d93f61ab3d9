"""Where a program writes the numbers that it launches a kernel with: tiles, warps and stages."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator, Mapping

from bragg.analyze.causes.text.program_text import FileText, call_name
from bragg.code.python_nodes import parts_of

_CHOOSES = ("max", "min", "int")
_MOST_PARTS = 400  # of expressions that numbers may come from

Keys = tuple[str | None, ...]
"""Of an entry in dictionaries and sequences, the outermost first; None: any, or a number."""


def line_of_constants(file: FileText, launch: int, compiled: Mapping[str, int]) -> int | None:
    """The line that writes most of the numbers of a launch; None: the launch does, or no line has more than others.

    Args:
        file: Of the launch.
        launch: Its line.
        compiled: Numbers that the kernel was compiled with, by keyword: the text may choose from several.
    """
    statement = file.statement(launch)
    if statement is None:
        return None
    calls = list(parts_of(statement, ast.Call))
    given = [each for call in calls if isinstance(call.func, ast.Subscript) for each in call.keywords]
    if any(isinstance(each.value, ast.Constant) and compiled.get(each.arg or "") == each.value.value for each in given):
        return None
    written = Counter(
        constant.lineno
        for name, number in compiled.items()
        for each in given
        if each.arg in (name, None)
        for constant in set(_constants(file, each.value, () if each.arg else (name,)))
        if constant.value == number
    )
    if all(each.arg not in (None, *compiled) for each in given):
        return _line_of_configuration(file, compiled)
    (line, most), (_, second) = [*written.most_common(2), (None, 0), (None, 0)][:2]
    return line if most > second else None


def _line_of_configuration(file: FileText, compiled: Mapping[str, int]) -> int | None:
    """The `triton.Config` that has these numbers and no others; None: no or several lines do."""
    found = set()
    for call in parts_of(file.tree, ast.Call):
        if call_name(call) == "Config" and call.args:
            entries = {name: value for name, value in _named(call.args[0]) if name is not None}
            entries |= {each.arg: each.value for each in call.keywords if each.arg and each.arg in compiled}
            if entries and all(_is_number(value, compiled.get(name)) for name, value in entries.items()):
                found.add(call.lineno)
    return found.pop() if len(found) == 1 else None


def _is_number(value: ast.expr, number: int | None) -> bool:
    return isinstance(value, ast.Constant) and value.value == number


def _named(part: ast.expr) -> list[tuple[str | None, ast.expr]]:
    """Entries of a dictionary, without those of dictionaries that are spread into it: these have no name."""
    if isinstance(part, ast.Dict):
        return [(_text(name), value) for name, value in zip(part.keys, part.values, strict=True)]
    is_dict = isinstance(part, ast.Call) and call_name(part) == "dict"
    return [(each.arg, each.value) for each in part.keywords] if isinstance(part, ast.Call) and is_dict else []


def _constants(file: FileText, value: ast.expr, keys: Keys) -> Iterator[ast.Constant]:
    """What an entry of a value may be; what functions of other files make of their arguments is not known."""
    waiting, seen = [(value, keys)], set[tuple[ast.expr, Keys]]()
    while waiting and len(seen) < _MOST_PARTS:
        each = waiting.pop()
        if each not in seen:
            seen.add(each)
            part, left = each
            if isinstance(part, ast.Constant) and not left:
                yield part
            waiting += _behind(file, part, left)


def _behind(file: FileText, part: ast.expr, keys: Keys) -> list[tuple[ast.expr, Keys]]:
    """What a part may be, each with the keys of the entry that is asked for."""
    if isinstance(part, ast.Subscript):
        name = part.slice.value if isinstance(part.slice, ast.Constant) else None
        return [(part.value, (name if isinstance(name, str) else None, *keys))]
    if named := _named(part):
        return _entries(named, keys)
    if isinstance(part, (ast.Tuple, ast.List)):
        return [(each, keys[1:]) for each in part.elts]
    if isinstance(part, ast.IfExp):
        return [(part.body, keys), (part.orelse, keys)]
    chosen = part.args if isinstance(part, ast.Call) and call_name(part) in _CHOOSES else file.behind(part)
    return [(each, keys) for each in chosen]


def _text(name: ast.expr | None) -> str | None:
    """A key of a dictionary; None: what follows is spread into it. A key that is no text has its own spelling."""
    return None if name is None else str(name.value) if isinstance(name, ast.Constant) else ast.unparse(name)


def _entries(named: list[tuple[str | None, ast.expr]], keys: Keys) -> list[tuple[ast.expr, Keys]]:
    """Values of a dictionary that have the first of some keys, if it is known, and dictionaries in it."""
    own = [(value, keys[1:]) for name, value in named if keys and name is not None and keys[0] in (name, None)]
    return own + [(value, keys) for name, value in named if name is None]
