"""Conditions under `vmap`: JAX computes both branches for the whole batch, and chooses.

No name of an operation tells that, so what belongs to the branches gets a scope while the function is traced.
"""

from __future__ import annotations

import functools

from bragg.record.hooks.jax.lines import leave_out
from bragg.record.inside.notes import note

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any


# Tables of rules by primitive, by version of JAX.
_TABLES = ("fancy_primitive_batchers", "spmd_axis_primitive_batchers", "axis_primitive_batchers")


def mark_batched_conditions(conditionals: ModuleType) -> Callable[[], None] | None:
    """Put the branches of each condition that depends on the element of a batch into a scope.

    Returns:
        What undoes it; None when this JAX batches conditions otherwise.
    """
    import jax

    from bragg.grouping.hlo_names import BATCHED_COND  # loads NumPy, which JAX has loaded

    primitive, batching = (getattr(conditionals, name, None) for name in ("cond_p", "batching"))
    tables = (getattr(batching, name, None) for name in _TABLES)
    table = next((each for each in tables if isinstance(each, dict) and primitive in each), None)
    if table is None:
        note(f"JAX {jax.__version__} batches conditions in an unknown way: cond under vmap is not told from other work")
        return None
    rule = table[primitive]
    leave_out(__file__)

    @functools.wraps(rule)
    def batch(*arguments: Any, **options: Any) -> Any:
        index_axis = arguments[-1][0]
        if index_axis is None:
            return rule(*arguments, **options)
        with jax.named_scope(BATCHED_COND):
            return rule(*arguments, **options)

    table[primitive] = batch
    return functools.partial(table.__setitem__, primitive, rule)


HOOK = ("jax._src.lax.control_flow.conditionals", mark_batched_conditions)
"""The module of JAX, and the function that patches it."""
