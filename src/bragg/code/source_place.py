"""Places in the source that code was made of, and the calls by which it came there."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import NamedTuple

from bragg.code.python_nodes import walk

# Far more than users nest: damaged texts must not exhaust memory or stack.
MAX_CALLS = 50

# Functions of Triton itself: users did not write them and cannot change them.
_LIBRARIES = ("/triton/language/", "/triton/experimental/gluon/language/", "/triton/tools/")


class SourcePlace(NamedTuple):
    """A line of source code.

    Attributes:
        file: As the compiler was given it.
        line: From 1.
        column: From 0 or 1, as the compiler counts; 0 when unknown.
        function: That the line is in; empty when unknown.
    """

    file: str
    line: int
    column: int = 0
    function: str = ""


CallChain = tuple[SourcePlace, ...]
"""A place, and where the function that it is in was inlined, innermost first; empty when unknown."""


def is_library(file: str) -> bool:
    """Whether code of this file is shown under the line that calls it."""
    return any(part in file for part in _LIBRARIES)


def user_place(chain: CallChain) -> SourcePlace | None:
    """The innermost place that is the user's own; the outermost one when none is."""
    return next((place for place in chain if not is_library(place.file)), chain[-1] if chain else None)


# Kernels share files.
@lru_cache(maxsize=16)
def function_spans(text: str) -> tuple[tuple[int, int, str], ...]:
    """First line, last line and name of each function of a Python file, outer ones first; none for other text.

    Decorators belong to their function.
    """
    try:
        with warnings.catch_warnings():  # what is wrong with the source was said when it was compiled
            warnings.simplefilter("ignore")
            tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # the last two: brackets nest too deep
        return ()
    functions = [node for node in walk(tree) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))]
    spans = [
        (min([node.lineno, *(item.lineno for item in node.decorator_list)]), node.end_lineno or node.lineno, node.name)
        for node in functions
    ]
    return tuple(sorted(spans, key=lambda span: (span[0], -span[1])))


def name_functions(chains: Iterable[CallChain], texts: Mapping[str, str]) -> list[CallChain]:
    """The chains, with the names of Python functions that compilers leave out.

    Args:
        chains: The chains.
        texts: Text of source files by name.
    """

    def named(place: SourcePlace) -> SourcePlace:
        if place.function or place.file not in texts:
            return place
        around = [name for first, last, name in function_spans(texts[place.file]) if first <= place.line <= last]
        return place._replace(function=around[-1] if around else "")

    return [tuple(map(named, chain)) for chain in chains]
