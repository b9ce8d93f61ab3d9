"""JAX's profiler: what programs mark for it, and the GPU's records, which it takes."""

from __future__ import annotations

import functools
import sys
from contextlib import nullcontext

from bragg.core import core
from bragg.record.inside.notes import once

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType, ModuleType
    from typing import Any


MODULE = "jax._src.profiler"
_PUBLIC = "jax.profiler"


def record_annotations(profiler: ModuleType) -> Callable[[], None]:
    """Make scopes of what the program marks for JAX's profiler: `TraceAnnotation`, `StepTraceAnnotation` and others.

    Returns:
        What undoes it.
    """
    kind: Any = profiler.TraceAnnotation
    methods = "__init__", "__enter__", "__exit__"
    own = {name: vars(kind)[name] for name in methods if name in vars(kind)}
    make, enter, leave = (getattr(kind, name) for name in methods)

    def make_with_scope(self: Any, name: str, **metadata: Any) -> None:
        make(self, name, **metadata)
        if not _is_of_jax(sys._getframe(1)):
            self._bragg_scope = core.Scope(name)

    def enter_scope(self: Any) -> Any:
        _scope_of(self).__enter__()
        return enter(self)

    def leave_scope(self: Any, *exception: Any) -> Any:
        try:
            return leave(self, *exception)
        finally:
            _scope_of(self).__exit__(*exception)

    kind.__init__, kind.__enter__, kind.__exit__ = make_with_scope, enter_scope, leave_scope

    def undo() -> None:
        for name in methods:
            delattr(kind, name)
        for name, method in own.items():
            setattr(kind, name, method)

    return undo


def _is_of_jax(maker: FrameType) -> bool:
    """Whether JAX marks a function of its own, and not a function of the program in its name."""
    module = maker.f_globals.get("__name__", "")
    if module == MODULE:
        module = getattr(maker.f_locals.get("func"), "__module__", "")
    return str(module).startswith("jax._src.")


def _scope_of(annotation: Any) -> Any:
    """Its scope; of JAX's own, and of one that was made before recording began, none."""
    return getattr(annotation, "_bragg_scope", nullcontext())


def share_device_records(profiler: ModuleType) -> Callable[[], None]:
    """Go on recording the GPU after JAX's profiler has run: CUPTI has one set of buffers in a process.

    Returns:
        What undoes it.
    """
    start, stop = profiler.start_trace, profiler.stop_trace
    say = once("JAX's profiler and bragg share one CUPTI: only one of them gets the GPU times of what runs now")

    @functools.wraps(start)
    def start_trace(*arguments: Any, **options: Any) -> Any:
        say()
        core.flush_device_records()
        return start(*arguments, **options)

    @functools.wraps(stop)
    def stop_trace(*arguments: Any, **options: Any) -> Any:
        try:
            return stop(*arguments, **options)
        finally:
            core.reclaim_device_records()

    _replace(profiler, {start: start_trace, stop: stop_trace})
    return lambda: _replace(profiler, {start_trace: start, stop_trace: stop})


def _replace(profiler: ModuleType, functions: dict[Any, Any]) -> None:
    """Let names in the module, and in the public one, lead to other functions."""
    for module in (profiler, sys.modules.get(_PUBLIC, profiler)):
        for name in ("start_trace", "stop_trace"):
            current = getattr(module, name, None)
            setattr(module, name, functions.get(current, current))
