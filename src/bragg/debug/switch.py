"""Switches the engine on: for one kernel, or for every launch in a block of code."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from bragg.debug.launch import execute
from bragg.errors import UsageError

__all__ = ["InterpretedKernel", "redirected", "run_plainly"]

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
    """

    def __init__(self, kernel: Any) -> None:
        self.kernel = kernel

    def __getitem__(self, grid: Any) -> Callable[..., None]:
        def launch(*arguments: Any, **named: Any) -> None:
            run = _RUNNERS[-1] if _RUNNERS else run_plainly
            run(self.kernel, grid, arguments, named)

        return launch


@contextmanager
def redirected(run: Runner) -> Iterator[None]:
    """Send every launch of a Triton kernel to a runner, whenever the kernel was decorated.

    Raises:
        UsageError: Triton is not installed.
    """
    classes = _launching_classes()
    before = [(kind, kind.__dict__.get("run")) for kind in classes]

    def redirect(self: Any, *arguments: Any, grid: Any, warmup: bool = False, **named: Any) -> None:
        if not warmup:
            run(self, grid, arguments, named)

    for kind in classes:
        kind.run = redirect
    _RUNNERS.append(run)
    try:
        yield
    finally:
        _RUNNERS.remove(run)
        for kind, method in before:
            if method is None:
                del kind.run
            else:
                kind.run = method


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
