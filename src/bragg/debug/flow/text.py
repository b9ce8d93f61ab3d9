"""The text of a function, and what is made of it: once for all functions that have the same text at the same place.

A test that defines its kernel anew for each of its parameters makes many functions of one text, as a factory of kernels
does.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from functools import lru_cache
from types import CodeType
from typing import Any

from bragg.code.python_nodes import walk
from bragg.debug.flow.global_names import Reasons, free_names, reasons_to_refuse
from bragg.debug.flow.nodes import deciding_names
from bragg.debug.flow.rewriting.transform import rewrite
from bragg.debug.lazy import lazy
from bragg.debug.stepping.lines import STOPS

# Texts of a test module or a library of kernels; a tree of 100 lines takes about 1 MB.
_MOST_TEXTS = 256


class Text:
    """A function as it is written.

    Args:
        filename: Where it is.
        first_line: The line of its first decorator.
        text: The function without the indentation around it.
    """

    def __init__(self, filename: str, first_line: int, text: str) -> None:
        self._filename, self._first_line, self._text = filename, first_line, text
        self._codes: dict[Reasons | None, CodeType] = {}
        # What others find out about it: by what they look for, and by what they know of its names.
        self.found: dict[Any, Any] = {}

    @staticmethod
    @lru_cache(_MOST_TEXTS)
    def of(filename: str, first_line: int, text: str) -> Text:
        """The one text of a place."""
        return Text(filename, first_line, text)

    @lazy
    def tree(self) -> ast.FunctionDef:
        """Parsed, without decorators and with the line numbers of its file; not to be changed."""
        # Empty lines in front move all numbers while it is parsed; ast.increment_lineno would walk over the tree again.
        definition = ast.parse("\n" * (self._first_line - 1) + self._text).body[0]
        assert isinstance(definition, ast.FunctionDef)
        definition.decorator_list.clear()
        return definition

    @lazy
    def nodes(self) -> list[ast.AST]:
        """All of the tree, the upper ones first."""
        return walk(self.tree)

    @lazy
    def free_names(self) -> list[ast.expr]:
        """Names, and dotted names, that it uses and does not assign."""
        return free_names(self.nodes)

    @lazy
    def free_texts(self) -> list[tuple[ast.expr, str]]:
        """The same, each with its text."""
        return [(node, ast.unparse(node)) for node in self.free_names]

    @lazy
    def deciding_names(self) -> frozenset[str]:
        """Names that its conditions, and those of functions that it calls, may be decided by."""
        return deciding_names(self.nodes)

    def code(self, names: Mapping[str, Any] | None) -> CodeType:
        """The rewritten function.

        Args:
            names: What names mean outside of it, to tell of those that Triton refuses; None: tell of none.

        Raises:
            Unsupported: A construct that Triton kernels do not have, or the engine does not know.
        """
        reasons = None if names is None else reasons_to_refuse(self.free_names, names)
        if reasons not in self._codes:
            refused_names = names if any(reasons or ()) else None
            function = rewrite(self.nodes, self._filename, refused_names)
            STOPS.put_into(function, self._filename)
            module = ast.Module([function], [])
            compiled = compile(module, self._filename, "exec", dont_inherit=True)
            self._codes[reasons] = next(const for const in compiled.co_consts if isinstance(const, CodeType))
        return self._codes[reasons]
