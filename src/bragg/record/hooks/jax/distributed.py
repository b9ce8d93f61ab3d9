"""JAX: which process of `jax.distributed` this one is; at the end it has been forgotten."""

from __future__ import annotations

from bragg.record.hooks.methods import after
from bragg.record.inside.rank import observe_place
from bragg.record.inside.rank_clock import KEY, meet

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any

    from bragg.record.hooks.imports import Hook


_FIND_MS = 500


def observe_processes(distributed: ModuleType) -> Callable[[], None]:
    """Note number and count of processes when they have met."""

    def tell(_result: object, state: Any, *_: object) -> None:
        observe_place(rank=int(state.process_id), ranks=int(state.num_processes))

        def find() -> str | None:
            try:
                return str(state.client.blocking_key_value_get(KEY, _FIND_MS))
            except RuntimeError:  # The deadline is over.
                return None

        meet(int(state.process_id), lambda address: state.client.key_value_set(KEY, address), find)

    return after(distributed.State, "initialize", tell)


HOOK: Hook = ("jax._src.distributed", observe_processes)
