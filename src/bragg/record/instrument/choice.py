"""Kernels that the program itself names for clocks: `bragg.instrument(kernel)`."""

from __future__ import annotations

from types import FunctionType
from weakref import WeakSet

from bragg.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeVar

    Kernel = TypeVar("Kernel")


# The Python functions of kernels: kernels of some versions of Triton hash their source.
_chosen: WeakSet[FunctionType] = WeakSet()


def instrument(kernel: Kernel) -> Kernel:
    """Choose a Triton kernel for clocks inside: `bragg.instrument(kernel)`, or as a decorator above `@triton.jit`.

    A recording that instruments (`bragg run --instrument`, `bragg.start(instrument=".")`) then times chosen kernels
    alone, of those that its regular expression finds. Other recordings, and no recording, are not affected.

    Args:
        kernel: What `@triton.jit`, `@triton.autotune` or `@triton.heuristics` made.

    Returns:
        The same kernel.

    Raises:
        UsageError: It is no kernel.
    """
    function = _function(kernel)
    if function is None:
        raise UsageError(f"bragg.instrument takes a Triton kernel, above @triton.jit, not {type(kernel).__name__}")
    _chosen.add(function)
    return kernel


def is_chosen(kernel: object) -> bool:
    """Whether a kernel may have clocks: it was chosen, or none was."""
    return not _chosen or _function(kernel) in _chosen


def _function(kernel: Any) -> FunctionType | None:
    """The Python function below all decorators of Triton; None when there is none."""
    inner = getattr(kernel, "fn", None)
    while inner is not None and not isinstance(inner, FunctionType):
        inner = getattr(inner, "fn", None)
    return inner
