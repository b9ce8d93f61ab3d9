"""Switches the engine on: for one kernel, or for every launch in a block of code."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from bragg.debug.host.driver import has_host_driver
from bragg.debug.host.launch import execute, without_engine
from bragg.errors import UsageError

__all__ = ["InterpretedKernel", "redirect", "redirected", "run_plainly"]

Runner = Callable[..., Any]


def run_plainly(kernel: Any, grid: Any, arguments: tuple[Any, ...], named: dict[str, Any]) -> None:
    """Execute a launch that nobody watches."""
    execute(kernel, grid, arguments, named)


# Runners of the blocks that are entered now, the innermost last.
_RUNNERS: list[Runner] = []


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
                raise without_engine(error) from None

        return launch


@contextmanager
def redirected(run: Runner) -> Iterator[None]:
    """Send every launch of a Triton kernel to a runner inside of a block; see `redirect`.

    Raises:
        UsageError: Triton is not installed.
    """
    undo = redirect(run)
    _RUNNERS.append(run)
    try:
        yield
    finally:
        _RUNNERS.remove(run)
        undo()


def redirect(run: Runner, is_wanted: Callable[[], bool] = lambda: True) -> Callable[[], None]:
    """Send every launch of a Triton kernel to a runner, whenever the kernel was decorated.

    Kernels that are only compiled are, where Triton can ask the driver for the host.

    Args:
        run: Executes a launch.
        is_wanted: Asked at each launch; False: Triton launches as ever.

    Returns:
        What undoes it.

    Raises:
        UsageError: Triton is not installed.
    """
    before = [(kind, kind.__dict__.get("run"), kind.run) for kind in _launching_classes()]
    for kind, _, launch in before:
        kind.run = _redirection(launch, run, is_wanted)

    def undo() -> None:
        for kind, method, _ in before:
            if method is None:
                del kind.run
            else:
                kind.run = method

    return undo


def _redirection(launch: Callable[..., Any], run: Runner, is_wanted: Callable[[], bool]) -> Callable[..., Any]:
    def redirected_run(kernel: Any, *arguments: Any, grid: Any, warmup: bool = False, **named: Any) -> Any:
        if not is_wanted() or (warmup and has_host_driver()):
            return launch(kernel, *arguments, grid=grid, warmup=warmup, **named)
        try:
            return None if warmup else run(kernel, grid, arguments, named)
        except Exception as error:  # noqa: BLE001 - the kernel is the author's code
            raise without_engine(error) from None

    return redirected_run


def _launching_classes() -> list[Any]:
    try:
        from triton.runtime.autotuner import Autotuner, Heuristics
        from triton.runtime.jit import JITFunction
    except ImportError as error:
        raise UsageError("Triton is not installed", hint="pip install triton") from error
    classes = [JITFunction, Autotuner, Heuristics]
    interpreter = sys.modules.get("triton.runtime.interpreter")
    if interpreter is not None:
        classes.append(interpreter.InterpretedFunction)
    return classes
