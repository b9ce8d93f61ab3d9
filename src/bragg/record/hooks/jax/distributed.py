"""JAX: which process of `jax.distributed` this one is; at the end it has been forgotten."""

from __future__ import annotations

from bragg.record.hooks.methods import wrap
from bragg.record.inside.notes import guarded
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

    @guarded
    def tell(state: Any) -> None:
        observe_place(rank=int(state.process_id), ranks=int(state.num_processes))

    def wrapper(initialize: Callable[..., Any]) -> Callable[..., Any]:
        def call(state: Any, *arguments: Any, **options: Any) -> Any:
            result = initialize(state, *arguments, **options)
            tell(state)
            return result

        return call

    return wrap(distributed.State, "initialize", wrapper)


HOOK: Hook = ("jax._src.distributed", observe_processes)
