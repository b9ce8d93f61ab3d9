"""PyTorch: which rank a process is, where no launcher has said it, and its place along the axes of parallelism."""

from __future__ import annotations

from bragg.record.hooks.methods import after
from bragg.record.inside.rank import observe_place

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any

    from bragg.record.hooks.imports import Hook

__all__ = ["HOOKS"]


def observe_ranks(distributed: ModuleType) -> Callable[[], None]:
    """Note rank and number of ranks whenever a process group was made: at the end it may be gone."""

    def tell(*_: object) -> None:
        observe_place(rank=distributed.get_rank(), ranks=distributed.get_world_size())

    return after(distributed, "init_process_group", tell)


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
    ("torch.distributed.device_mesh", observe_mesh),
]
