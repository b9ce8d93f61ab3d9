"""PyTorch: which rank a process is, where no launcher has said it, and its place along the axes of parallelism."""

from __future__ import annotations

from contextlib import suppress

from bragg.record.hooks.methods import after, before
from bragg.record.inside.rank import observe_place
from bragg.record.inside.rank_clock import KEY, meet, part

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any

    from bragg.record.hooks.imports import Hook


def observe_ranks(distributed: ModuleType) -> Callable[[], None]:
    """Note rank, number of ranks and clocks whenever a process group was made: at the end it may be gone."""

    def tell(*_: object) -> None:
        rank, store = distributed.get_rank(), distributed._get_default_store()
        observe_place(rank=rank, ranks=distributed.get_world_size())
        with suppress(RuntimeError, NotImplementedError):  # A store that keeps nothing: clocks stay apart.
            meet(
                rank,
                lambda address: store.set(KEY, address),
                lambda: store.get(KEY).decode() if store.check([KEY]) else None,
            )

    return after(distributed, "init_process_group", tell)


def observe_parting(distributed: ModuleType) -> Callable[[], None]:
    """Note clocks once more before a process group goes."""
    return before(distributed, "destroy_process_group", part)


def observe_mesh(device_mesh: ModuleType) -> Callable[[], None]:
    """Note the coordinates in a mesh whose axes have names; the one with most axes counts."""
    most = [0]

    def tell(mesh: Any, *_: object) -> None:
        names, at = mesh.mesh_dim_names, mesh.get_coordinate()
        if names and at and len(names) > most[0]:
            most[0] = len(names)
            observe_place(coordinates=dict(zip(map(str, names), map(int, at), strict=True)))

    return after(device_mesh, "init_device_mesh", tell)


HOOKS: list[Hook] = [
    ("torch.distributed.distributed_c10d", observe_ranks),
    ("torch.distributed.distributed_c10d", observe_parting),
    ("torch.distributed.device_mesh", observe_mesh),
]
