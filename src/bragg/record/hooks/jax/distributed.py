"""JAX: which process of `jax.distributed` this one is; at the end it has been forgotten."""

from __future__ import annotations

from bragg.record.hooks.methods import after
from bragg.record.inside.rank import observe_place

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any

    from bragg.record.hooks.imports import Hook

__all__ = ["HOOK"]


def observe_processes(distributed: ModuleType) -> Callable[[], None]:
    """Note number and count of processes when they have met."""

    def tell(_result: object, state: Any, *_: object) -> None:
        observe_place(rank=int(state.process_id), ranks=int(state.num_processes))

    return after(distributed.State, "initialize", tell)


HOOK: Hook = ("jax._src.distributed", observe_processes)
