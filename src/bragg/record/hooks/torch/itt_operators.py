"""PyTorch: operators as ITT tasks, and the context of `backward` in its worker threads.

A name that some version of PyTorch lacks costs what depends on it, never the program.
"""

from __future__ import annotations

import threading

from bragg.core import core
from bragg.record.hooks.methods import wrap_engine
from bragg.record.inside.notes import note, once

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any


def inherit_context(torch: ModuleType) -> Callable[[], None] | None:
    """Let the threads of the autograd engine inherit the context of the thread that called `backward`.

    Returns:
        What undoes it; None when this PyTorch keeps its engine elsewhere.
    """

    def lending(run_backward: Callable[..., Any]) -> Callable[..., Any]:
        def run_with_context(*arguments: Any, **options: Any) -> Any:
            core.lend_context()
            try:
                return run_backward(*arguments, **options)
            finally:
                core.return_context()

        return run_with_context

    return wrap_engine(torch, lending, "backward passes lack the context of their caller")


def emit_operators(torch: ModuleType) -> Callable[[], None] | None:
    """Let operators arrive as ITT tasks, from this thread and from Python threads that start later.

    Returns:
        What undoes it; None when this PyTorch has no ITT.
    """
    profiler = torch.autograd.profiler
    wanted = ("emit_itt", "_enable_profiler", "_disable_profiler")
    if not torch.profiler.itt.is_available() or not all(hasattr(profiler, name) for name in wanted):
        note(f"PyTorch {torch.__version__} was built without ITT: its operators cannot be recorded")
        return None
    operators = _Operators(profiler.emit_itt, profiler._disable_profiler)
    originals = profiler._enable_profiler, profiler._disable_profiler, threading.Thread.run
    profiler._enable_profiler = operators.giving_way(profiler._enable_profiler)
    profiler._disable_profiler = operators.coming_back(profiler._disable_profiler)
    threading.Thread.run = operators.around(threading.Thread.run)  # type: ignore[assignment,method-assign]
    operators.enter()

    def undo() -> None:
        operators.leave()
        profiler._enable_profiler, profiler._disable_profiler, threading.Thread.run = originals  # type: ignore[method-assign]

    return undo


def share_device_records(torch: ModuleType) -> Callable[[], None] | None:
    """Go on recording the GPU after `torch.profiler` has run.

    CUPTI has one subscription and one set of buffers in a process. A PyTorch that wants the subscription gets no GPU
    times while bragg records; one that does without takes the buffers, and switches everything off when it ends.

    Returns:
        What undoes it; None when this PyTorch profiles otherwise.
    """
    profiler = torch.autograd.profiler
    if not hasattr(profiler, "_enable_profiler") or not hasattr(profiler, "_disable_profiler"):
        note(f"PyTorch {torch.__version__} hides its profiler: what it profiles, and all after it, is not recorded")
        return None
    enable, disable = profiler._enable_profiler, profiler._disable_profiler
    say = once("torch.profiler and bragg share one CUPTI: only one of them gets the GPU times of what runs now")

    def _enable_profiler(*arguments: Any, **options: Any) -> Any:
        if _own_range.is_changing:
            return enable(*arguments, **options)
        say()
        core.flush_device_records()
        return enable(*arguments, **options)

    def _disable_profiler(*arguments: Any, **options: Any) -> Any:
        if _own_range.is_changing:
            return disable(*arguments, **options)
        try:
            return disable(*arguments, **options)
        finally:
            core.reclaim_device_records()

    profiler._enable_profiler, profiler._disable_profiler = _enable_profiler, _disable_profiler

    def undo() -> None:
        profiler._enable_profiler, profiler._disable_profiler = enable, disable

    return undo


class _OwnRange(threading.local):
    """Whether this thread begins or ends the range of its operators, which does not concern the GPU."""

    is_changing = False

    def __enter__(self) -> None:
        self.is_changing = True

    def __exit__(self, *_: object) -> None:
        self.is_changing = False


_own_range = _OwnRange()


class _Operators(threading.local):
    """The ITT range of each thread. PyTorch allows one profiler a thread, and the user's own goes first."""

    def __init__(self, emit_itt: Callable[[], Any], disable: Callable[[], Any]) -> None:
        self._emit_itt = emit_itt
        self._disable = disable
        self._range: Any = None
        self._guests = 0  # profilers that the thread was left to, one within the other

    def enter(self) -> None:
        emitting = self._emit_itt()
        with _own_range:
            emitting.__enter__()
        self._range = emitting

    def leave(self) -> None:
        emitting, self._range = self._range, None
        if emitting is not None:
            with _own_range:
                emitting.__exit__(None, None, None)

    def giving_way(self, enable: Callable[..., Any]) -> Callable[..., Any]:
        """`enable` of a profiler, which takes the thread from ours."""
        say = once("a profiler of PyTorch owns its thread: operators that come through ITT are missing while it runs")

        def _enable_profiler(*arguments: Any, **options: Any) -> Any:
            gives_way = self._range is not None
            if gives_way:
                say()
                self.leave()
            try:
                result = enable(*arguments, **options)
            except BaseException:
                if gives_way:
                    self.enter()
                raise
            if gives_way or self._guests:
                self._guests += 1
            return result

        return _enable_profiler

    def coming_back(self, disable: Callable[..., Any]) -> Callable[..., Any]:
        """`disable` of a profiler, after which ours has the thread again."""

        def _disable_profiler(*arguments: Any, **options: Any) -> Any:
            result = disable(*arguments, **options)
            if self._guests:
                self._guests -= 1
                if not self._guests:
                    self.enter()
            return result

        return _disable_profiler

    def around(self, run: Callable[[threading.Thread], None]) -> Callable[[threading.Thread], None]:
        """`Thread.run` with operators recorded."""

        def run_recorded(thread: threading.Thread) -> None:
            self.enter()
            try:
                run(thread)
            finally:
                if self._range is not None:
                    self._disable()  # Its `__exit__` would say that no thread is profiled any more.

        return run_recorded
