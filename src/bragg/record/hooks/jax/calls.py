"""Calls of functions that JAX compiled, each one an operator, unless it is made by another such call.

A name that some version of JAX lacks costs what depends on it, never the program.
"""

from __future__ import annotations

import functools
import gc
import sys
from types import FunctionType

from bragg.core import core
from bragg.record.hooks.jax.arguments import ArgumentWatch
from bragg.record.hooks.jax.lines import line_of_program
from bragg.record.hooks.methods import wrap
from bragg.record.inside.notes import guarded, note

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import ModuleType
    from typing import Any, TypeVar

    from bragg.record.hooks.imports import Hook
    from bragg.record.hooks.methods import Undo

    _Result = TypeVar("_Result")


_PUBLIC = "jax"
# Functions of JAX's own type, whose calls run no Python once they are compiled, and what makes them.
_TYPES = {"PjitFunction": "jit", "PmapFunction": "pmap"}


def record_calls(pjit: ModuleType) -> Undo | None:
    """Make an operator of each call of a jitted function.

    No Python runs that could be wrapped: what is called is exchanged in the function itself.

    Returns:
        What undoes it; None when this JAX makes jitted functions otherwise.
    """
    if not hasattr(pjit, "_cpp_pjit"):
        return _missing("makes jitted functions in an unknown way: their calls are not recorded")
    from bragg.grouping.hlo_names import MADE_AT

    def followed(make_function: Callable[..., Any]) -> Callable[..., Any]:
        def make_followed(*arguments: Any, **options: Any) -> Any:
            function = make_function(*arguments, **options)
            name = f"jit({_name_of(function)})"
            _follow(function, name)
            if hasattr(function, "__wrapped__") and not _is_own(function):
                core.watch_arguments(function, ArgumentWatch(name, function, _statics(arguments)))
            if line := line_of_program(sys._getframe(1)):
                core.describe_operator(name, f"{MADE_AT}{line}", "jit")
            return function

        return make_followed

    for function in _existing(pjit, tuple(_TYPES)):
        if hasattr(function, "__name__"):
            _follow(function, f"{_TYPES[type(function).__name__]}({function.__name__})")
    undo_making = wrap(pjit, "_cpp_pjit", followed)
    core.record_followed_calls(True)

    def undo() -> None:
        core.record_followed_calls(False)
        undo_making()

    return undo


def record_transposed_calls(pjit: ModuleType) -> Undo | None:
    """Make operators of what transformations call outside of the function: the backward pass of `grad(jit(f))(x)`."""
    primitive = getattr(pjit, "jit_p", None) or getattr(pjit, "pjit_p", None)
    if not hasattr(primitive, "impl"):
        return _missing("calls transposed functions in an unknown way: these calls are not recorded")
    return wrap(primitive, "impl", lambda call: _called(call, lambda _, options: f"jit({options.get('name', '')})"))


def record_traces(pjit: ModuleType) -> Undo:
    """Make an operator of `jit(f).lower(x)` and the like, so that what is traced there does not count as called."""

    def traced(trace: Callable[..., Any]) -> Callable[..., Any]:
        return _called(trace, lambda arguments, _: f"[trace] jit({_name_of(arguments[0])})")

    # JAX before 0.6 has other ones for each function.
    names = [name for name in ("jit_lower", "jit_trace", "jit_eval_shape") if hasattr(pjit, name)]
    return _all_of([wrap(pjit, name, traced) for name in names])


def record_compiled_calls(pxla: ModuleType) -> Undo | None:
    """Make an operator of each call of what `jit(f).lower(x).compile()` returned, if it runs no Python."""
    kind: Any = getattr(pxla, "MeshExecutable", None)
    if not hasattr(kind, "create_cpp_call"):
        return _missing("calls what it compiled ahead of time in an unknown way: these calls are not recorded")

    def followed(make_call: Callable[..., Any]) -> Callable[..., Any]:
        def make_followed(self: Any, *arguments: Any, **options: Any) -> Any:
            call = make_call(self, *arguments, **options)
            if call is not None:
                _follow(call, _name_of_executable(self))
            return call

        return make_followed

    for compiled in _existing(pxla, ("Compiled",)):
        if type(getattr(compiled, "_call", None)).__name__ in _TYPES:
            _follow(compiled._call, _name_of_executable(compiled._executable))
    return wrap(kind, "create_cpp_call", followed)


def record_slow_compiled_calls(stages: ModuleType) -> Undo | None:
    """Record the calls that Python makes: of programs that call back, and the first one of each."""
    kind: Any = getattr(stages, "Compiled", None)
    if not hasattr(kind, "call"):
        return _missing("runs precompiled programs in an unknown way: calls of those that call back are missing")
    call = kind.call
    kind.call = staticmethod(_called(call, lambda arguments, _: _name_of_executable(arguments[0].executable)))
    return lambda: setattr(kind, "call", staticmethod(call))


def record_mapped_calls(module: ModuleType) -> Undo | None:
    """Make an operator of each call of what `pmap` returned."""
    make_function = getattr(module, "pmap", None)
    if make_function is None:  # It moved from one module to another.
        return None

    def followed(make_function: Callable[..., Any]) -> Callable[..., Any]:
        def make_followed(*arguments: Any, **options: Any) -> Any:
            function = make_function(*arguments, **options)
            if isinstance(function, FunctionType):
                name = f"pmap({function.__name__})"
                return functools.wraps(function)(_called(function, lambda *_: name))
            _follow(function, f"pmap({_name_of(function)})")
            return function

        return make_followed

    public = sys.modules.get(_PUBLIC)
    holders = [holder for holder in (module, public) if getattr(holder, "pmap", None) is make_function]
    return _all_of([wrap(holder, "pmap", followed) for holder in holders])


def record_callbacks(callback: ModuleType) -> Undo | None:
    """Make a scope of each function of the program that a compiled one calls back, where calls are operators again."""
    kind: Any = getattr(callback, "_FlatCallback", None)
    if kind is None:
        return _missing("calls back into the program in an unknown way: what these functions call counts for the call")

    def called(call_back: Callable[..., _Result]) -> Callable[..., _Result]:
        def call(self: Any, *arguments: Any) -> _Result:
            with core.Scope(f"[callback] {_name_of(getattr(self, 'callback_func', None))}"):
                if not core.enter_callback():
                    return call_back(self, *arguments)
                try:
                    return call_back(self, *arguments)
                finally:
                    core.exit_callback()

        return call

    return wrap(kind, "__call__", called)


def record_steps(_pjit: ModuleType) -> Undo:
    """Count calls, which are the steps of a program that trains, from now on: what lies before is not a step.

    Returns:
        What undoes it.
    """
    core.count_call_steps(True)
    return lambda: core.count_call_steps(False)


CALL_HOOKS: list[Hook] = [
    ("jax._src.pjit", record_calls),
    ("jax._src.pjit", record_steps),
    ("jax._src.pjit", record_transposed_calls),
    ("jax._src.pjit", record_traces),
    ("jax._src.interpreters.pxla", record_compiled_calls),
    ("jax._src.stages", record_slow_compiled_calls),
    ("jax._src.callback", record_callbacks),
    ("jax._src.api", record_mapped_calls),
    ("jax._src.pmap", record_mapped_calls),
]
"""Modules of JAX, and the function that patches each."""


def _missing(what: str) -> Undo | None:
    note(f"JAX {getattr(sys.modules.get(_PUBLIC), '__version__', '')} {what}")
    return None


def _all_of(undo_each: list[Undo]) -> Undo:
    def undo() -> None:
        for undo_one in undo_each:
            undo_one()

    return undo


def _existing(module: ModuleType, types: tuple[str, ...]) -> list[Any]:
    """Objects of these types, if the module is not just being imported."""
    if getattr(module.__spec__, "_initializing", False):
        return []
    return [each for each in gc.get_objects() if type(each).__name__ in types]


@guarded
def _follow(function: Any, name: str) -> None:
    core.follow_calls(function, name, not _is_own(function))


def _statics(made_with: tuple[Any, ...]) -> tuple[str, ...]:
    """Names of static arguments, of what JAX makes a jitted function with."""
    return next((names for each in made_with if (names := getattr(each, "static_argnames", None))), ())


def _is_own(function: Any) -> bool:
    """Whether it is a function of JAX itself."""
    return str(getattr(function, "__module__", "")).partition(".")[0] == _PUBLIC


def _name_of(function: Any) -> str:
    return str(getattr(function, "__name__", "function"))


def _called(
    function: Callable[..., _Result], name_of: Callable[[tuple[Any, ...], Mapping[str, Any]], str]
) -> Callable[..., _Result]:
    """The function, each call of which is an operator whose name depends on the arguments."""

    def call(*arguments: Any, **options: Any) -> _Result:
        if not core.enter_call(name_of(arguments, options)):
            return function(*arguments, **options)
        try:
            return function(*arguments, **options)
        finally:
            core.exit_call()

    return call


def _name_of_executable(executable: Any) -> str:
    """JAX's name of the function, such as `jit(loss)`."""
    try:
        return str(executable.unsafe_call.name)
    except AttributeError:
        return "a compiled function"
