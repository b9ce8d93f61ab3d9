"""Kernels and the functions they call, rewritten once and executed by the engine."""

from __future__ import annotations

import inspect
import linecache
import sys
import textwrap
import weakref
from collections import ChainMap
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from types import CodeType, FunctionType
from typing import Any

from bragg.debug.faults import Unsupported
from bragg.debug.flow.jitted import is_of
from bragg.debug.flow.place import MARK
from bragg.debug.flow.text import Text
from bragg.debug.lazy import lazy


@dataclass
class Program:
    """One function of the author, ready to be executed.

    Attributes:
        function: The author's function.
        largest_blocks: Elements of the largest block that it had, by the constants that sizes of blocks depend on.
        dependence: Where it depends on data, by constants of launches: filled by `bragg.debug.flow.dependence`.
        replaced: Text in the place of its own, as Triton's `_unsafe_update_src` puts it there; None: its own counts.
    """

    function: FunctionType
    replaced: str | None = None

    @classmethod
    def of(cls, function: FunctionType, jitted: Any = None) -> Program:
        """The program of a function, rewritten at most once for each of its codes.

        Args:
            function: The author's function.
            jitted: The decorated one, whose text may be another one by now; None: it is not known.
        """
        found = _PROGRAMS.get(function)
        if found is None or found._made_of is not function.__code__:
            found = _PROGRAMS[function] = cls(function)
        return found._as_in(jitted)

    def __post_init__(self) -> None:
        self._made_of = self.function.__code__
        self.largest_blocks: dict[tuple[str, ...], int] = {}
        self.dependence: dict[tuple[tuple[str, Any], ...], Any] = {}

    def _as_in(self, jitted: Any) -> Program:
        text = getattr(jitted, "src", None)
        if text is None or text is self._usual:
            return self
        if text in self._others:
            return self._others[text]
        lines = getattr(jitted, "raw_src", None)  # From Triton 3.5 on: read already, and there is one after `exec`.
        if "source" not in vars(self) and lines:
            self.source = textwrap.dedent("".join(lines)), int(jitted.starting_line_number)
        if self.source is not None and self.source[0].endswith(text):
            self._usual = text
            return self
        other = self._others[text] = Program(self.function, text)
        return other

    @lazy
    def _others(self) -> dict[str, Program]:
        return {}

    @lazy
    def _usual(self) -> str | None:
        return None

    @lazy
    def source(self) -> tuple[str, int] | None:
        """Its text and the line of the file where it begins; None: there is none, as after `exec`."""
        if self.replaced is not None:
            return self.replaced, self._line_of_def()
        try:
            lines, first = inspect.getsourcelines(self.function)
        except (OSError, TypeError):
            return None
        return textwrap.dedent("".join(lines)), first

    def _line_of_def(self) -> int:
        """Below the decorators, which Triton takes off."""
        first = self.function.__code__.co_firstlineno
        lines = linecache.getlines(self.function.__code__.co_filename)[first - 1 :]
        return first + next((k for k, line in enumerate(lines) if line.lstrip().startswith("def ")), 0)

    @property
    def is_rewritten(self) -> bool:
        """Programs may part ways in it. Else its code is as Python made it, and each is executed alone."""
        return self.source is not None

    @lazy
    def text(self) -> Text:
        """Its text, which other functions may share.

        Raises:
            Unsupported: There is none.
        """
        if self.source is None:
            raise Unsupported(f"the source of {self.function.__name__} cannot be found")
        text, first = self.source
        return Text.of(self.function.__code__.co_filename, first, text)

    @lazy
    def code(self) -> CodeType:
        """The rewritten function; where there is no text, the function as Python made it."""
        return self.text.code(self._refusable_names()) if self.is_rewritten else self.function.__code__

    def _refusable_names(self) -> Mapping[str, Any] | None:
        """What names mean outside of the function; None where Triton is told to take all, and for its own functions."""
        is_own = is_of(self.function, "triton")
        if is_own or sys.modules["triton"].knobs.compilation.allow_non_constexpr_globals:
            return None
        return self.names()

    def names(self) -> Mapping[str, Any]:
        """What names mean outside of the function."""
        return ChainMap(closed_over(self.function), self.function.__globals__)

    @lazy
    def used_names(self) -> tuple[str, ...]:
        """Global names in it."""
        return tuple(sorted(global_names(self.code) - {MARK}))


_PROGRAMS: weakref.WeakKeyDictionary[FunctionType, Program] = weakref.WeakKeyDictionary()


def closed_over(function: FunctionType) -> dict[str, Any]:
    """Names of enclosing functions and their values; those that have none yet are left out."""
    found = {}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        with suppress(ValueError):  # An empty cell.
            found[name] = cell.cell_contents
    return found


def global_names(code: CodeType) -> set[str]:
    """Those that code and the functions in it use."""
    names = set(code.co_names)
    for const in code.co_consts:
        if isinstance(const, CodeType):
            names |= global_names(const)
    return names
