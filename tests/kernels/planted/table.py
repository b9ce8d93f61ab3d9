"""The table of kernels with one planted bug each, and what must be said of it.

The line is the one that ends with `# bug`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["PLANTED", "Planted", "bug", "bug_of_the_host", "bug_of_the_kernel", "empty", "floats", "integers"]


@dataclass(frozen=True)
class Planted:
    """One planted bug.

    Attributes:
        rule: Name of the checker that must find it.
        kernel: Name of the kernel.
        launch: Runs the kernel on fresh tensors.
        file: Where the bug is.
        line: Its line.
        tensor: Name of the tensor that the finding is about; empty: of none.
        programs: Linear numbers of the programs that show it; None: no program does, or any may.
    """

    rule: str
    kernel: str
    launch: Callable[[], None]
    file: str
    line: int
    tensor: str
    programs: frozenset[int] | None


PLANTED: dict[str, Planted] = {}


def bug(
    rule: str,
    *arguments: Callable[[], Any] | Any,
    grid: Any = (4,),
    tensor: str = "",
    programs: Any = None,
    within: Any = None,
    **constants: Any,
) -> Callable[[Any], Any]:
    """Enter a kernel into the table.

    Args:
        rule: Name of the checker that must find the bug.
        arguments: What the kernel is launched with; callables make fresh arrays.
        grid: Of the launch.
        tensor: Name of the tensor of the finding.
        programs: Numbers of the programs of the finding.
        within: The function that has the bug; None: the kernel itself.
        constants: Further arguments.
    """

    def enter(kernel: Any) -> Any:
        function = kernel.fn
        assert function.__name__ not in PLANTED

        def launch() -> None:
            given = [argument() if callable(argument) else argument for argument in arguments]
            kernel[grid](*given, **constants)

        numbers = None if programs is None else frozenset(programs)
        PLANTED[function.__name__] = Planted(
            rule,
            function.__name__,
            launch,
            inspect.getsourcefile(function),
            _marked((within or kernel).fn),
            tensor,
            numbers,
        )
        return kernel

    return enter


def bug_of_the_host(rule: str, kernel: str, *, tensor: str) -> Callable[[Callable[[], None]], Callable[[], None]]:
    """Enter a function that launches kernels into the table.

    Args:
        rule: Name of the checker that must find the bug.
        kernel: Name of the kernel that the finding is about.
        tensor: Name of the tensor.
    """

    def enter(launch: Callable[[], None]) -> Callable[[], None]:
        PLANTED[launch.__name__] = Planted(
            rule, kernel, launch, inspect.getsourcefile(launch), _marked(launch), tensor, None
        )
        return launch

    return enter


def bug_of_the_kernel(rule: str, run: Callable[[Any], Any], *, tensor: str) -> Callable[[Any], Any]:
    """Enter a kernel with something around it, such as autotune, into the table.

    Args:
        rule: Name of the checker that must find the bug.
        run: Launches the kernel.
        tensor: Name of the tensor.
    """

    def enter(kernel: Any) -> Any:
        function = kernel.base_fn
        PLANTED[function.__name__] = Planted(
            rule,
            function.__name__,
            lambda: run(kernel),
            inspect.getsourcefile(function),
            _marked(function),
            tensor,
            None,
        )
        return kernel

    return enter


def _marked(function: Any) -> int:
    lines, first = inspect.getsourcelines(function)
    (marked,) = (number for number, line in enumerate(lines, first) if line.rstrip().endswith("# bug"))
    return marked


def floats(*shape: int) -> Callable[[], Any]:
    """Ones of float32."""
    return lambda: np.ones(shape, "f4")


def empty(*shape: int) -> Callable[[], Any]:
    """Memory of float32 that nobody has written."""
    return lambda: np.empty(shape, "f4")


def integers(count: int, value: int = 0) -> Callable[[], Any]:
    """Equal numbers of int32."""
    return lambda: np.full(count, value, "i4")
