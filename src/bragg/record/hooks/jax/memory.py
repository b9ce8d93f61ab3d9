"""JAX: what its allocator says of each GPU at the end; it tells no single block."""

from __future__ import annotations

import atexit
import os
import sys

from bragg.record.inside import metadata

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any

__all__ = ["HOOK", "TOLD"]

TOLD = "jax_memory"
"""Key of the profile's meta."""

_KEPT = ("peak_bytes_in_use", "bytes_in_use", "bytes_limit", "largest_alloc_size", "num_allocs")


def tell_memory(_api: ModuleType) -> None:
    """Ask the allocators when the recording stops, if the program has used devices by then."""
    at_exit: dict[str, dict[str, int]] = {}
    pid = os.getpid()

    def ask() -> dict[str, dict[str, int]]:  # a forked child has the devices of its parent, and not JAX's threads
        return _memory() if os.getpid() == pid else {}

    # When the program ends, JAX's API forgets its devices. What is registered after that is called before it.
    atexit.register(lambda: at_exit.update(ask()))
    metadata.tell_at_stop(TOLD, lambda _is_end: ask() or at_exit)


def _memory() -> dict[str, dict[str, int]]:
    """By ordinal; asking for devices would begin with them, which a program that uses none must not be made to."""
    jax: Any = sys.modules.get("jax")
    bridge: Any = sys.modules.get("jax._src.xla_bridge")
    if jax is None or bridge is None or not bridge.backends_are_initialized():
        return {}
    gpus = [device for device in jax.local_devices() if device.platform in ("gpu", "cuda", "rocm")]
    told = {str(device.local_hardware_id): device.memory_stats() or {} for device in gpus}
    return {
        ordinal: {name: int(stats[name]) for name in _KEPT if name in stats} for ordinal, stats in told.items() if stats
    }


HOOK = ("jax._src.api", tell_memory)
