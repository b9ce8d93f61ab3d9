"""What names of a kernel mean inside of the engine: Triton's objects are replaced by the engine's."""

from __future__ import annotations

import builtins
import inspect
import sys
from collections.abc import Callable
from enum import Enum
from types import CellType, CodeType, FunctionType, ModuleType
from typing import Any, NoReturn

from bragg.debug.faults import Unsupported
from bragg.debug.flow import divergence
from bragg.debug.flow.aggregates import AggregateKind
from bragg.debug.flow.jitted import is_jitted, is_of, python_function
from bragg.debug.flow.place import MARK
from bragg.debug.flow.program import Program, closed_over, global_names
from bragg.debug.flow.ranges import KernelRange
from bragg.debug.gluon.functions import TYPES, gluon_function
from bragg.debug.language import FUNCTIONS, METHOD_FUNCTIONS
from bragg.debug.numbers.dtypes import PointerType, dtype_named
from bragg.debug.numbers.libdevice import LIBDEVICE_FUNCTIONS
from bragg.debug.numbers.reductions import sort
from bragg.debug.state import launch_number
from bragg.debug.values import Tensor

_GLUON = "triton.experimental.gluon"
BUILTINS: dict[str, Any] = {
    "range": KernelRange,
    "min": FUNCTIONS["builtin_min"],
    "max": FUNCTIONS["builtin_max"],
    "abs": FUNCTIONS["abs"],
    "print": FUNCTIONS["device_print"],
}


class Namespace:
    """A module of Triton, or one of the author's that kernels use."""

    def __init__(self, module: ModuleType) -> None:
        self._module = module
        self._is_libdevice = module.__name__.endswith("libdevice")
        self._is_gluon = module.__name__.startswith(_GLUON)
        self._is_triton = module.__name__.split(".")[0] == "triton" and not self._is_gluon
        self._found: dict[str, Any] = {}

    def __getattr__(self, name: str) -> Any:
        if name not in self._found:
            self._found[name] = self._translate(name)
        return self._found[name]

    def _translate(self, name: str) -> Any:
        if self._is_libdevice:
            if name in LIBDEVICE_FUNCTIONS:
                return LIBDEVICE_FUNCTIONS[name]
            raise Unsupported(f"libdevice.{name} is not supported", hint="Compute it with functions of triton.language")
        if self._is_triton and name in FUNCTIONS:
            return FUNCTIONS[name]
        if self._is_gluon:
            return self._of_gluon(name)
        if self._module.__name__ == "triton.language.math" and name in LIBDEVICE_FUNCTIONS:
            return LIBDEVICE_FUNCTIONS[name]
        return translated(getattr(self._module, name), f"{self._module.__name__}.{name}")

    def _of_gluon(self, name: str) -> Any:
        value = getattr(self._module, name)
        if name in TYPES:
            return TYPES[name]
        if getattr(value, "__triton_builtin__", False) and not isinstance(value, type):
            return gluon_function(value.__module__, value.__name__)
        return translated(value, f"{self._module.__name__}.{name}")


def language_function(name: str) -> Any:
    """A function of triton.language by its name.

    Raises:
        Unsupported: The engine does not have it.
    """
    if name in FUNCTIONS:
        return FUNCTIONS[name]
    module = sys.modules.get("triton.language")
    if module is None or not hasattr(module, name):
        raise Unsupported(f"triton.language.{name} is not supported", hint="See docs/guides/debugging.md for what is")
    return translated(getattr(module, name), f"triton.language.{name}")


_TRANSLATED: dict[int, tuple[Any, Any]] = {}


def translated(value: Any, name: str = "") -> Any:
    """The engine's object for one that kernels refer to.

    Args:
        value: What the name means outside of the engine.
        name: For messages.

    Raises:
        Unsupported: A function or class of Triton that the engine does not have.
    """
    if value is None or isinstance(value, bool | int | float | str | Enum):
        return value
    if isinstance(value, ModuleType):
        return _held(value, Namespace)
    if is_jitted(value):
        return _held(value, NestedFunction)
    if type(value) is tuple or type(value) is list:
        return type(value)(translated(part, name) for part in value)
    if hasattr(value, "_fields") and isinstance(value, tuple):
        return type(value)(*(translated(part, name) for part in value))
    if isinstance(value, type) and getattr(value, "__triton_aggregate__", False):
        return _held(value, _aggregate)
    module = type(value).__module__
    if module.startswith(("triton.language", "triton.runtime")):
        return _translated_object(value, name)
    own = getattr(value, "__module__", None) or ""
    if own.startswith(_GLUON) and getattr(value, "__triton_builtin__", False) and not isinstance(value, type):
        return gluon_function(own, value.__name__)
    if own.startswith("triton.language") and hasattr(value, "__name__"):
        return _translated_function(value, name)
    if inspect.isfunction(value) and getattr(value, "__triton_builtin__", False):
        return _held(value, _builtin)
    if inspect.isfunction(value) and _uses_triton(value):
        return _held(value, _undecorated)
    replacement = BUILTINS.get(getattr(value, "__name__", ""))
    if replacement is not None and value is getattr(builtins, value.__name__, None):
        return replacement
    return value


def _held(value: Any, make: Callable[[Any], Any]) -> Any:
    """The replacement of an object, made once; the object is kept so that its identity stays taken."""
    if id(value) not in _TRANSLATED:
        _TRANSLATED[id(value)] = (value, make(value))
    return _TRANSLATED[id(value)][1]


def _uses_triton(function: FunctionType) -> bool:
    used = (function.__globals__.get(name) for name in function.__code__.co_names)
    return any(isinstance(value, ModuleType) and value.__name__.split(".")[0] == "triton" for value in used)


def _builtin(function: Any) -> Callable[..., Any]:
    """The author's function that is decorated with `@builtin`: the compiler calls it with what makes Triton's IR."""

    def call(*_arguments: Any, **_named: Any) -> NoReturn:
        raise Unsupported(
            f"{function.__name__} is decorated with @builtin, and makes Triton's IR itself: it cannot be executed",
            hint="Make it a @triton.jit function",
        )

    return call


def _undecorated(function: FunctionType) -> Callable[..., Any]:
    """The author's function without @triton.jit, executed with the engine's Triton after a finding reported it."""

    def call(*arguments: Any, **named: Any) -> Any:
        return with_kernel_names(function)(*arguments, **named)

    return call


def _translated_object(value: Any, name: str) -> Any:
    kind = type(value).__name__
    if kind == "constexpr":
        held = translated(value.value, name)
        return _constant_function(value.value, held) if type(value.value) is FunctionType else held
    if kind == "dtype":
        try:
            return dtype_named(value.name)
        except KeyError:
            raise Unsupported(f"the type {value.name} is not supported", hint="Use another float of 8 bits") from None
    if kind == "pointer_type":
        return PointerType(translated(value.element_ty))
    if kind == "ConstexprFunction":
        return lambda *arguments, **named: translated(value.fn(*arguments, **named))
    raise Unsupported(f"{name or value!r} ({kind}) is not supported in a kernel", hint="See docs/guides/debugging.md")


def _translated_function(value: Any, name: str) -> Any:
    own = value.__name__
    if "libdevice" in value.__module__:
        if own in LIBDEVICE_FUNCTIONS:
            return LIBDEVICE_FUNCTIONS[own]
    elif own in FUNCTIONS:
        return FUNCTIONS[own]
    elif inspect.isfunction(value) and not hasattr(value, "__triton_builtin__"):
        return _compile_time_function(value)
    raise Unsupported(f"{name or own} is not supported", hint="See docs/guides/debugging.md for what is")


def _compile_time_function(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of Triton that computes with types and constants; as in Triton, its constants are wrapped."""
    constexpr = sys.modules["triton.language"].constexpr

    def wrapped(value: Any) -> Any:
        return constexpr(value) if isinstance(value, int | float) else value

    def call(*arguments: Any, **named: Any) -> Any:
        given = {name: wrapped(value) for name, value in named.items()}
        return translated(function(*map(wrapped, arguments), **given))

    return call


def _constant_function(function: FunctionType, in_kernel: Callable[..., Any]) -> Callable[..., Any]:
    """What `@tl.constexpr` makes of a function: of constants it is computed by Python, with constants as Triton's."""
    of_constants = _compile_time_function(function)

    def call(*arguments: Any, **named: Any) -> Any:
        is_constant = all(isinstance(one, int | float | str) for one in (*arguments, *named.values()))
        return (of_constants if is_constant else in_kernel)(*arguments, **named)

    return call


def _aggregate(decorated: type) -> AggregateKind:
    return AggregateKind(decorated, translated, with_kernel_names)


def method(name: str) -> Callable[..., Any]:
    """What `x.name(...)` calls: the function of the language with `x` first."""
    found: Callable[..., Any] = METHOD_FUNCTIONS.get(name) or language_function(name)
    return found


def executable(program: Program) -> Callable[..., Any]:
    """The rewritten function, with the meaning its global names have now."""
    return _made(program.function, program.code, program.used_names)


def with_kernel_names(function: FunctionType) -> Callable[..., Any]:
    """A function as it is, but with the engine's meaning of the names that it uses."""
    return _made(function, function.__code__, tuple(global_names(function.__code__)))


# Python's, and the engine's in the place of some.
_BUILTINS = {**vars(builtins), **BUILTINS}


def _made(function: FunctionType, code: CodeType, used: tuple[str, ...]) -> Callable[..., Any]:
    names: dict[str, Any] = {MARK: divergence, "__builtins__": _BUILTINS}
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
        self._is_fixed = is_of(self.fn, "triton")
        self.epoch = -1

    @property
    def __name__(self) -> str:
        return self.fn.__name__

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Call it for all active programs."""
        if self._is_fixed and self.fn.__name__ == "sort" and (quick := _sorted(*arguments, **named)) is not None:
            return quick
        if self._executable is None or (not self._is_fixed and self.epoch != launch_number()):
            self._executable = executable(Program.of(self.fn, self._jitted))
            self.epoch = launch_number()
        return self._executable(*arguments, **named)


def _sorted(x: Tensor, dim: int | None = None, descending: bool = False) -> Tensor | None:
    """`tl.sort` without its network, where the order of elements is clear."""
    axis = len(x.shape) - 1
    if dim not in (None, axis, -1):
        return None
    return sort(x, axis, bool(descending))
