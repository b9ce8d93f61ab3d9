"""Calls of functions that JAX compiled, each one an operator, unless it is made by another such call.

A name that some version of JAX lacks costs what depends on it, never the program.
"""

from __future__ import annotations

import functools
import gc
import sys
from types import FunctionType

from bragg.record.core import core
from bragg.record.hooks.methods import wrap
from bragg.record.notes import guarded, note

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import ModuleType
    from typing import Any, TypeVar

    from bragg.record.hooks.imports import Hook
    from bragg.record.hooks.methods import Undo

    _Result = TypeVar("_Result")

__all__ = ["CALL_HOOKS", "record_calls", "record_compiled_calls", "record_mapped_calls", "record_transposed_calls"]

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
        _missing("makes jitted functions otherwise: their calls are not recorded")
        return None

    def followed(make_function: Callable[..., Any]) -> Callable[..., Any]:
        def make_followed(*arguments: Any, **options: Any) -> Any:
            function = make_function(*arguments, **options)
            _follow(function, "jit")
            return function

        return make_followed

    is_new = getattr(pjit.__spec__, "_initializing", False)
    for function in [] if is_new else gc.get_objects():
        if type(function).__name__ in _TYPES:
            _follow(function, _TYPES[type(function).__name__])
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
        _missing("calls transposed functions otherwise: these calls are not recorded")
        return None
    return wrap(primitive, "impl", lambda call: _called(call, lambda _, options: f"jit({options.get('name', '')})"))


def record_compiled_calls(stages: ModuleType) -> Undo | None:
    """Make an operator of each call of what `jit(f).lower(x).compile()` returned."""
    kind = getattr(stages, "Compiled", None)
    if kind is None:
        _missing("compiles ahead of time otherwise: calls of what it compiled are not recorded")
        return None
    return wrap(kind, "__call__", lambda call: _called(call, lambda arguments, _: _name_of(arguments[0])))


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
            _follow(function, "pmap")
            return function

        return make_followed

    public = sys.modules.get(_PUBLIC)
    holders = [holder for holder in (module, public) if getattr(holder, "pmap", None) is make_function]
    undo_each = [wrap(holder, "pmap", followed) for holder in holders]

    def undo() -> None:
        for undo_one in undo_each:
            undo_one()

    return undo


CALL_HOOKS: list[Hook] = [
    ("jax._src.pjit", record_calls),
    ("jax._src.pjit", record_transposed_calls),
    ("jax._src.stages", record_compiled_calls),
    ("jax._src.api", record_mapped_calls),
    ("jax._src.pmap", record_mapped_calls),
]
"""Modules of JAX, and what is done with them."""


def _missing(what: str) -> None:
    note(f"JAX {getattr(sys.modules.get(_PUBLIC), '__version__', '')} {what}")


@guarded
def _follow(function: Any, made_by: str) -> None:
    core.follow_calls(function, f"{made_by}({getattr(function, '__name__', 'function')})")


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


def _name_of(compiled: Any) -> str:
    """What JAX calls it, such as `jit(loss)`."""
    try:
        return str(compiled._executable.unsafe_call.name)
    except AttributeError:
        return "a compiled function"
