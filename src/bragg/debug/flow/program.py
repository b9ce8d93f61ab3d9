"""Kernels and the functions they call, rewritten once and executed by the engine."""

from __future__ import annotations

import inspect
import linecache
import sys
import textwrap
import weakref
from collections import ChainMap
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from types import CellType, CodeType, FunctionType
from typing import Any, NoReturn

from bragg.debug.faults import Unsupported
from bragg.debug.flow import divergence
from bragg.debug.flow.jitted import python_function
from bragg.debug.flow.place import MARK
from bragg.debug.flow.text import Text
from bragg.debug.foreign import BUILTINS, translated
from bragg.debug.numbers.reductions import sort
from bragg.debug.state import launch_number
from bragg.debug.values import Tensor

__all__ = ["NestedFunction", "Program", "closed_over", "with_kernel_names"]


@dataclass
class Program:
    """One function of the author, ready to be executed.

    Attributes:
        function: The author's function.
        largest_blocks: Elements of the largest block that it had, by the constants that sizes of blocks depend on.
        dependence: Where it depends on data, once that was looked for: by `bragg.debug.flow.dependence`.
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
        self.dependence: tuple[Any] | None = None

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

    @cached_property
    def _others(self) -> dict[str, Program]:
        return {}

    @cached_property
    def _usual(self) -> str | None:
        return None

    @cached_property
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

    @cached_property
    def text(self) -> Text:
        """Its text, which other functions may share.

        Raises:
            Unsupported: There is none.
        """
        if self.source is None:
            raise Unsupported(f"the source of {self.function.__name__} cannot be found")
        text, first = self.source
        return Text.of(self.function.__code__.co_filename, first, text)

    @cached_property
    def _code(self) -> CodeType:
        return self.text.code(self._refusable_names()) if self.is_rewritten else self.function.__code__

    def _refusable_names(self) -> Mapping[str, Any] | None:
        """What names mean outside of the function; None where Triton is told to take all, and for its own functions."""
        is_own = self.function.__module__.startswith("triton.")
        if is_own or sys.modules["triton"].knobs.compilation.allow_non_constexpr_globals:
            return None
        return self.names()

    def names(self) -> Mapping[str, Any]:
        """What names mean outside of the function."""
        return ChainMap(closed_over(self.function), self.function.__globals__)

    @cached_property
    def _names(self) -> tuple[str, ...]:
        return tuple(sorted(_global_names(self._code) - {MARK}))

    def executable(self) -> Callable[..., Any]:
        """The rewritten function, with the meaning its global names have now."""
        return _made(self.function, self._code, self._names)


def with_kernel_names(function: FunctionType) -> Callable[..., Any]:
    """A function as it is, but with the engine's meaning of the names that it uses."""
    return _made(function, function.__code__, tuple(_global_names(function.__code__)))


def _made(function: FunctionType, code: CodeType, used: tuple[str, ...]) -> Callable[..., Any]:
    names: dict[str, Any] = {MARK: divergence, "__builtins__": {**_builtins(), **BUILTINS}}
    outer = closed_over(function)
    for name in used:
        if name in outer or name in function.__globals__:
            names[name] = _meaning(outer[name] if name in outer else function.__globals__[name], name)
    cells = tuple(CellType(translated(outer[name], name)) for name in code.co_freevars)
    made = FunctionType(code, names, function.__name__, closure=cells or None)
    made.__defaults__ = tuple(translated(value) for value in function.__defaults__ or ()) or None
    named = function.__kwdefaults__
    made.__kwdefaults__ = {name: translated(value) for name, value in named.items()} if named else None
    return made


_PROGRAMS: weakref.WeakKeyDictionary[FunctionType, Program] = weakref.WeakKeyDictionary()


def closed_over(function: FunctionType) -> dict[str, Any]:
    """Names of enclosing functions and their values; those that have none yet are left out."""
    found = {}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        with suppress(ValueError):  # An empty cell.
            found[name] = cell.cell_contents
    return found


def _builtins() -> dict[str, Any]:
    import builtins

    return vars(builtins)


def _global_names(code: CodeType) -> set[str]:
    names = set(code.co_names)
    for const in code.co_consts:
        if isinstance(const, CodeType):
            names |= _global_names(const)
    return names


class _Refused:
    """A name that the engine does not know: refused where it is used, as it may be used nowhere."""

    def __init__(self, error: Unsupported) -> None:
        self._error = error

    def __call__(self, *_arguments: Any, **_named: Any) -> NoReturn:
        raise self._error

    def __getattr__(self, name: str) -> NoReturn:
        raise self._error


def _meaning(value: Any, name: str) -> Any:
    try:
        return translated(value, name)
    except Unsupported as error:
        return _Refused(error)


class NestedFunction:
    """A @triton.jit function as kernels call it.

    Args:
        jitted: The decorated function.
    """

    def __init__(self, jitted: Any) -> None:
        self.fn = python_function(jitted)
        self._jitted = jitted
        self._executable: Callable[..., Any] | None = None
        # Triton's own functions never change; the author's may between launches, in a notebook.
        self._is_fixed = self.fn.__module__.startswith("triton.")
        self.epoch = -1

    @property
    def __name__(self) -> str:
        return self.fn.__name__

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Call it for all active programs."""
        if self._is_fixed and self.fn.__name__ == "sort" and (quick := _sorted(*arguments, **named)) is not None:
            return quick
        if self._executable is None or (not self._is_fixed and self.epoch != launch_number()):
            self._executable = Program.of(self.fn, self._jitted).executable()
            self.epoch = launch_number()
        return self._executable(*arguments, **named)


def _sorted(x: Tensor, dim: int | None = None, descending: bool = False) -> Tensor | None:
    """`tl.sort` without its network, where the order of elements is clear."""
    axis = len(x.shape) - 1
    if dim not in (None, axis, -1):
        return None
    return sort(x, axis, bool(descending))
