"""Switches the engine on: for one kernel, or for every launch in a block of code."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property, partial
from typing import Any

from bragg.debug.flow.jitted import python_function
from bragg.debug.host.compiled_launch import inductor_launch, inductor_precompile, run_property
from bragg.debug.host.imports import when_imported
from bragg.debug.host.launch import execute, without_engine
from bragg.debug.host.launch_hooks import run_between_hooks
from bragg.debug.host.sources import Sources
from bragg.debug.host.streams import captured
from bragg.debug.host.tuned import forget_tuning
from bragg.errors import TritonMissing, UsageError

Runner = Callable[..., Any]


def run_plainly(kernel: Any, grid: Any, arguments: tuple[Any, ...], named: dict[str, Any]) -> None:
    """Execute a launch that nobody watches."""
    execute(kernel, grid, arguments, named, run=run_between_hooks)


# Runners of the blocks that are entered now, the innermost last.
_RUNNERS: list[Runner] = []
# One for all blocks: tests that are checked one by one define the same kernels again.
_SOURCES = Sources()
# Launches of several threads are executed one after the other: the engine has one current machine.
_ONE_LAUNCH = threading.RLock()

# Variables of which the compiler takes what the program has set when it launches a kernel.
_OF_COMPILER = (
    "TRITON_OVERRIDE_ARCH",
    "TRITON_DEFAULT_FP_FUSION",
    "TRITON_F32_DEFAULT",
    "TRITON_DISABLE_LINE_INFO",
    "TRITON_INSTRUMENTATION_MODE",
    "DISABLE_PTXAS_OPT",
    "PTXAS_OPTIONS",
)


class Launched:
    """What a launch returns: the compiled kernel, compiled when something is asked of it."""

    def __init__(self, compile_: Callable[[], Any]) -> None:
        self._compile = compile_
        self._environment = {name: os.environ[name] for name in _OF_COMPILER if name in os.environ}

    @cached_property
    def _compiled(self) -> Any:
        now = {name: os.environ.pop(name) for name in _OF_COMPILER if name in os.environ}
        os.environ.update(self._environment)
        try:
            return self._compile()
        finally:
            for name in self._environment:
                os.environ.pop(name, None)
            os.environ.update(now)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self._compiled, name)

    def __getitem__(self, grid: Any) -> Any:
        return self._compiled[grid]


class InterpretedKernel:
    """A kernel whose launches are executed by the engine: `interpreted[grid](...)`.

    Args:
        kernel: The decorated function.
        run: Executes its launches; None: the innermost block of `redirected`, or plainly.
    """

    def __init__(self, kernel: Any, run: Runner | None = None) -> None:
        self.kernel = kernel
        self._run = run

    def __getitem__(self, grid: Any) -> Callable[..., None]:
        def launch(*arguments: Any, **named: Any) -> None:
            run = self._run or (_RUNNERS[-1] if _RUNNERS else run_plainly)
            try:
                run(self.kernel, grid, arguments, named)
            except Exception as error:  # noqa: BLE001 - the kernel is the author's code
                raise without_engine(error) from error.__cause__

        return launch


@contextmanager
def redirected(run: Runner) -> Iterator[None]:
    """Send every launch of a Triton kernel to a runner inside of a block; see `redirect`.

    Raises:
        TritonMissing: It is not installed.
    """
    undo = redirect(run)
    _RUNNERS.append(run)
    try:
        yield
    finally:
        _RUNNERS.remove(run)
        undo()


def redirect(run: Runner, is_wanted: Callable[[], bool] = lambda: True) -> Callable[[], None]:
    """Send every launch of a Triton kernel to a runner, however it is launched and whenever the kernel was decorated.

    Kernels that are only compiled are, where Triton can ask a driver; what is compiled is executed when it is launched.

    Args:
        run: Executes a launch. It is called by one thread at a time.
        is_wanted: Asked at each launch; False: Triton launches the kernel itself.

    Returns:
        What undoes it.

    Raises:
        TritonMissing: It is not installed.
    """
    redirection = _Redirection(run, is_wanted)
    redirection.begin()
    return redirection.end


class _Redirection:
    """Launches that go to a runner; what it takes are the arguments of `redirect`."""

    def __init__(self, run: Runner, is_wanted: Callable[[], bool]) -> None:
        self._run, self._is_wanted = run, is_wanted
        self._undo: list[Callable[[], Any]] = []

    def begin(self) -> None:
        """Replace whatever launches, now or as soon as it is imported."""
        compiled, *kinds = _launching_classes()
        for kind in kinds:
            self._replace_run(kind)
            self._replace(kind, "__call__", _call_without_grid(kind.__dict__.get("__call__"), self._is_wanted))
        run = run_property(compiled.__dict__.get("run"), self._run_alone, self._is_wanted)
        self._replace(compiled, "run", run)
        self._replace(sys.modules["triton.runtime.jit"], "inspect", _SOURCES)
        self._undo.append(when_imported("triton.runtime.interpreter", self._replace_interpreter))
        self._undo.append(when_imported("torch._inductor.runtime.triton_heuristics", self._replace_inductor))

    def end(self) -> None:
        """Put back all that was replaced."""
        for one in reversed(self._undo):
            one()
        if not _RUNNERS:
            forget_tuning()

    def _replace(self, owner: Any, name: str, new: Any) -> None:
        before = owner.__dict__.get(name)
        setattr(owner, name, new)
        self._undo.append(lambda: delattr(owner, name) if before is None else setattr(owner, name, before))

    def _replace_run(self, kind: Any) -> None:
        self._replace(kind, "run", self._instead_of(kind.run))

    def _replace_interpreter(self, interpreter: Any) -> None:
        kind = interpreter.InterpretedFunction
        if hasattr(kind, "run"):
            self._replace_run(kind)
            return
        # In Triton 3.4 each object has a `run` of its own.
        redirected_run = self._instead_of(lambda kernel, **named: kernel.__dict__["run"](**named))
        own = property(lambda kernel: partial(redirected_run, kernel), lambda kernel, run: vars(kernel).update(run=run))
        self._replace(kind, "run", own)
        self._replace(kind, "__getitem__", lambda kernel, grid: partial(kernel.run, grid=grid))

    def _replace_inductor(self, heuristics: Any) -> None:
        tuner = heuristics.CachingAutotuner
        self._replace(tuner, "precompile", inductor_precompile(tuner.precompile, self._is_wanted))
        for kind in (tuner, heuristics.DebugAutotuner):
            self._replace(kind, "run", inductor_launch(kind.run, self._run_alone, self._is_wanted))

    def _run_alone(self, *arguments: Any) -> Any:
        if captured(lambda: self._run_alone(*arguments)):
            return None
        with _ONE_LAUNCH:
            return self._run(*arguments)

    def _instead_of(self, launch: Callable[..., Any]) -> Callable[..., Any]:
        def redirected_run(kernel: Any, *arguments: Any, grid: Any, warmup: bool = False, **named: Any) -> Any:
            if warmup or not self._is_wanted():
                return launch(kernel, *arguments, grid=grid, warmup=warmup, **named)
            try:
                result = self._run_alone(kernel, grid, arguments, named)
            except Exception as error:  # noqa: BLE001 - the kernel is the author's code
                raise without_engine(error) from error.__cause__
            if result is not None:
                return result
            return Launched(lambda: launch(kernel, *arguments, grid=grid, warmup=True, **named))

        return redirected_run


class GridMissing(UsageError, RuntimeError):  # noqa: N818
    """A kernel is called as a function, which Triton refuses by a RuntimeError."""


class GridMissingAround(UsageError, TypeError):  # noqa: N818
    """An autotuner or heuristics are called as a function, which they are not: Python refuses by a TypeError."""


def _call_without_grid(call: Callable[..., Any] | None, is_wanted: Callable[[], bool]) -> Callable[..., Any]:
    missing = GridMissing if call is not None else GridMissingAround

    def refused_call(kernel: Any, *arguments: Any, **named: Any) -> Any:
        if not is_wanted():
            if call is None:
                raise TypeError(f"{type(kernel).__name__!r} object is not callable")
            return call(kernel, *arguments, **named)
        caller = sys._getframe(1)
        name = python_function(kernel).__name__
        raise missing(
            f"{caller.f_code.co_filename}:{caller.f_lineno}: {name} is called without a grid",
            hint=f"Say how many programs run it: {name}[(programs,)](...)",
        )

    return refused_call


def _launching_classes() -> list[Any]:
    """Compiled kernels, decorated functions, and what may be around a function."""
    try:
        from triton.compiler.compiler import CompiledKernel
        from triton.runtime.autotuner import Autotuner, Heuristics
        from triton.runtime.jit import JITFunction
    except ImportError as error:
        raise TritonMissing from error
    return [CompiledKernel, JITFunction, Autotuner, Heuristics]
