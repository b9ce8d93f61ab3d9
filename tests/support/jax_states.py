"""States of operations in functions that JAX compiles for the CPU."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from bragg.grouping.hlo_names import CONSTANT, arguments_of
from bragg.record.hooks.jax.hlo.text import operations_in

__all__ = ["states"]


def states(function: Callable[..., Any], *shapes: tuple[int, ...], type_: str = "float32") -> set[tuple[str, int]]:
    """States that name no arguments, and how many lines behind the function's first line they are.

    Args:
        function: Lines of its own file alone count.
        shapes: Of its arguments, which are whole numbers if they have one dimension.
        type_: Of all others.
    """
    import jax

    given = [jax.numpy.zeros(shape, "int32" if len(shape) == 1 else type_) for shape in shapes]
    text = jax.jit(function).lower(*given).compile().as_text()
    code = function.__code__
    found = operations_in(text, lambda file: Path(file) != Path(code.co_filename)).values()
    kept = {(each.state.name, each.state.place.line - code.co_firstlineno) for each in found if each.state.name}
    return {(name, line) for name, line in kept if not arguments_of(name) and name != CONSTANT}
