"""Which of the objects that kernels refer to are functions of kernels."""

from __future__ import annotations

import inspect
from functools import lru_cache
from types import FunctionType
from typing import Any


def is_jitted(value: Any) -> bool:
    """A function decorated with @triton.jit or @gluon.jit."""
    return _makes_kernels(type(value))  # type: ignore[arg-type]  # Types are hashable.


@lru_cache(maxsize=256)
def _makes_kernels(kind: type) -> bool:
    return any(
        one.__name__ in ("JITFunction", "InterpretedFunction") and one.__module__.startswith("triton.runtime")
        for one in kind.__mro__
    )


def is_gluon(jitted: Any) -> bool:
    """A function decorated with @gluon.jit."""
    return any(kind.__name__ == "GluonJITFunction" for kind in type(jitted).__mro__)


def is_interpreted(jitted: Any) -> bool:
    """A function that was decorated while `TRITON_INTERPRET=1` was set."""
    return type(jitted).__name__ == "InterpretedFunction"


def python_function(kernel: Any) -> FunctionType:
    """The author's function inside of decorators."""
    while not inspect.isfunction(kernel):
        kernel = kernel.fn
    return kernel


def is_of(function: FunctionType, *packages: str) -> bool:
    """It is defined in one of the packages; a function made by `exec` may be of no module."""
    return (function.__module__ or "").partition(".")[0] in packages
