"""JAX: the ranges that XLA pushes on a GPU, as modules, scopes and operations."""

from __future__ import annotations

from bragg.record.core import core

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

__all__ = ["read_ranges"]


def read_ranges(_jax: ModuleType) -> Callable[[], None]:
    """Split the ranges that come from now on.

    Returns:
        What undoes it.
    """
    core.read_xla(True)
    return lambda: core.read_xla(False)
