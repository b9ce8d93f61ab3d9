"""What public functions say of the arrays that they take and give."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src" / "bragg"
ARRAY = re.compile(r"\w*Array\b|\bndarray\b")
# Of these the annotation does not say the type.
ANY_TYPE = re.compile(r"(?<!\w)(Array|ndarray|NDArray\[Any\])(?!\w)")
SHAPE = re.compile(r"\[[^\]]+\]|shape|broadcast", re.IGNORECASE)
TYPE = re.compile(
    r"\b(u?int\d*|intp|float\d*|bool|bits|dtype|types?|integers?|floats|numbers|carrier|u8)\b", re.IGNORECASE
)


def test_public_functions_say_shape_and_type_of_arrays() -> None:
    silent = []
    for path in sorted(SOURCE.rglob("*.py")):
        text = path.read_text()
        if not ARRAY.search(text):
            continue
        for function in _public_functions(ast.parse(text)):
            arrays = [annotation for annotation in _annotations(function) if ARRAY.search(annotation)]
            told = ast.get_docstring(function) or ""
            says_type = not any(map(ANY_TYPE.search, arrays)) or TYPE.search(told)
            if arrays and not (SHAPE.search(told) and says_type):
                silent.append(f"{path.relative_to(SOURCE)}:{function.lineno} {function.name}")
    assert silent == []


def _public_functions(tree: ast.Module | ast.ClassDef) -> Iterator[ast.FunctionDef]:
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            yield from _public_functions(node)
        elif isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
            yield node


def _annotations(function: ast.FunctionDef) -> list[str]:
    arguments = function.args
    every = (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)
    found = [argument.annotation for argument in every] + [function.returns]
    return [ast.unparse(annotation) for annotation in found if annotation is not None]
