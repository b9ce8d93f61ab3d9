"""Where a program writes the numbers that it launches a kernel with: tiles, warps and stages."""

from __future__ import annotations

import ast
from collections import Counter

from bragg.analyze.causes.evidence import Evidence
from bragg.model import Place

__all__ = ["constants_of_launch"]


def constants_of_launch(evidence: Evidence, launch: Place) -> list[Place]:
    """Lines with numbers of the keywords of a launch, those with most of them first; none: it has such itself.

    Args:
        evidence: Of the program.
        launch: The line of the launch.
    """
    file = evidence.text.file(launch.file)
    statement = file.statement(launch.line) if file else None
    if file is None or statement is None:
        return []
    calls = [each for each in ast.walk(statement) if isinstance(each, ast.Call)]
    values = [each.value for call in calls if isinstance(call.func, ast.Subscript) for each in call.keywords]
    if any(_is_number(each) for each in values):
        return []
    numbers = [each for value in values for each in set(file.origins(value)) if _is_number(each)]
    lines = Counter(each.lineno for each in numbers if isinstance(each, ast.Constant))
    own = range(statement.lineno, (statement.end_lineno or statement.lineno) + 1)
    return [Place(launch.file, line) for line, _ in lines.most_common() if line not in own]


def _is_number(part: ast.AST) -> bool:
    return isinstance(part, ast.Constant) and isinstance(part.value, int) and part.value > 1
