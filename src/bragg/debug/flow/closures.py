"""Functions that a kernel writes as `lambda`: plain Python's meaning, for notebooks; Triton does not compile them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from bragg.debug.state import machine


@dataclass(frozen=True)
class Closure:
    """A `lambda`. The values that it takes from around it are parts, so that they part and meet with the programs.

    Attributes:
        function: Takes those values, then what it is called with.
        captured: The values.
    """

    function: Callable[..., Any]
    captured: tuple[Any, ...]

    is_kernel_value: ClassVar[bool] = True

    def __call__(self, *arguments: Any) -> Any:
        """Call it for all active programs."""
        return self.function(*self.captured, *arguments)


def closed(function: Callable[..., Any], captured: tuple[Any, ...]) -> Closure:
    """The value of a `lambda`."""
    machine().listeners.tell_difference("Triton does not compile `lambda`", "Make it a @triton.jit function")
    return Closure(function, captured)
