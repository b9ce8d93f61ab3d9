"""JAX: what its allocator says of each GPU, and which arrays are alive when most memory is in use.

The allocator reports no single block. So a thread asks how much is in use, and when that is more than ever takes JAX's
own profile of what is alive.
"""

from __future__ import annotations

import atexit
import os
import sys
import time
from base64 import b64encode
from threading import Event

from bragg.record.inside import metadata
from bragg.record.inside.threads import begin_own_thread

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any


TOLD, ARRAYS = "jax_memory", "jax_arrays"
"""Keys of the profile's meta."""

_KEPT = ("peak_bytes_in_use", "bytes_in_use", "bytes_limit", "largest_alloc_size", "num_allocs")
_GROWTH = 1.05
_LOOK_SHARE, _SNAPSHOT_SHARE = 0.001, 0.01  # of the time
_FIRST_S = 0.02  # that snapshots may take besides: a program fills most of its memory when it begins
_LEAST_PAUSE_S, _LONGEST_PAUSE_S, _PATIENCE_S = 0.02, 1.0, 2.0
_MOST_BYTES = 4 << 20  # 1 KB for 3,000 arrays of one line


class Snapshots:
    """The arrays at the highest use of memory so far. Threads: one that looks, any that asks."""

    def __init__(self) -> None:
        self._began_s = time.monotonic()
        self._spent_s = self._last_s = 0.0
        self._best: dict[str, Any] = {}

    def look(self) -> float | None:
        """Take a snapshot if more is in use than at the last one, and 1 % of the time affords it.

        Returns:
            How many seconds to wait for the next look, so that looks take 0.1 % of a core; None: no GPU tells.
        """
        cpu_s = time.thread_time()
        if not _is_used():
            return _LEAST_PAUSE_S
        gpus = _gpus()
        in_use = [int(stats.get("bytes_in_use", 0)) for gpu in gpus if (stats := gpu.memory_stats())]
        if not in_use:
            return None
        pause_s = (time.thread_time() - cpu_s) / _LOOK_SHARE
        looked_s = time.monotonic()
        is_affordable = self._spent_s + self._last_s <= _FIRST_S + _SNAPSHOT_SHARE * (looked_s - self._began_s)
        if sum(in_use) > _GROWTH * self._best.get("in_use_bytes", 0) and is_affordable:
            self._take(gpus[0].platform, sum(in_use))
            self._last_s = time.monotonic() - looked_s
            self._spent_s += self._last_s
        return min(max(pause_s, _LEAST_PAUSE_S), _LONGEST_PAUSE_S)

    def _take(self, platform: str, in_use_bytes: int) -> None:
        content: bytes = sys.modules["jax"].profiler.device_memory_profile(platform)
        told: dict[str, Any] = {"in_use_bytes": in_use_bytes}
        if len(content) > _MOST_BYTES:
            told["reason"] = f"the snapshot takes {len(content) >> 20} MB"
        else:
            told["pprof"] = b64encode(content).decode()
        self._best = told

    def told(self) -> dict[str, Any]:
        """For the meta of a profile; empty: there is none."""
        return {**self._best, "took_ns": round(self._spent_s * 1e9)} if self._best else {}


def tell_memory(_api: ModuleType) -> Callable[[], None]:
    """Take snapshots from now on, and ask the allocators when the recording stops, if the program has used devices.

    Returns:
        What ends taking snapshots.
    """
    at_exit: dict[str, dict[str, int]] = {}
    pid = os.getpid()
    snapshots, has_ended = Snapshots(), Event()

    def ask() -> dict[str, dict[str, int]]:  # a forked child has the devices of its parent, and not JAX's threads
        return _memory() if os.getpid() == pid else {}

    def end() -> None:
        has_ended.set()
        thread.join(_PATIENCE_S)
        at_exit.update(ask())

    def look() -> None:
        pause_s = snapshots.look()
        while pause_s is not None and not has_ended.wait(pause_s):
            pause_s = snapshots.look()

    # When the program ends, JAX's API forgets its devices. What is registered after that is called before it.
    atexit.register(end)
    metadata.tell_at_stop(TOLD, lambda _is_end: ask() or at_exit)
    metadata.tell_at_stop(ARRAYS, lambda _is_end: snapshots.told() if os.getpid() == pid else {})
    thread = begin_own_thread(look, "bragg-jax-memory")
    return has_ended.set


def _is_used() -> bool:
    """Asking for devices would begin with them, which a program that uses none must not be made to."""
    bridge: Any = sys.modules.get("jax._src.xla_bridge")
    return "jax" in sys.modules and bridge is not None and bool(bridge.backends_are_initialized())


def _gpus() -> list[Any]:
    jax: Any = sys.modules["jax"]
    return [device for device in jax.local_devices() if device.platform in ("gpu", "cuda", "rocm")]


def _memory() -> dict[str, dict[str, int]]:
    """By ordinal."""
    told = {str(gpu.local_hardware_id): gpu.memory_stats() or {} for gpu in (_gpus() if _is_used() else ())}
    return {
        ordinal: {name: int(stats[name]) for name in _KEPT if name in stats} for ordinal, stats in told.items() if stats
    }


HOOK = ("jax._src.api", tell_memory)
