"""PyTorch: the memory within its allocator's segments that no block was in when the recording ended, by size."""

from __future__ import annotations

import os

from bragg.record.inside import metadata

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any


TOLD = "torch_segments"
"""Key of the profile's meta."""


def tell_segments(torch: ModuleType) -> None:
    """Ask the allocator when the recording ends, if the program has used a GPU."""
    pid = os.getpid()

    def ask(is_end: bool) -> dict[str, Any]:  # a forked child cannot use the GPUs of its parent
        return _by_device(torch.cuda.memory_snapshot()) if is_end and os.getpid() == pid and _is_used(torch) else {}

    metadata.tell_at_stop(TOLD, ask)


def _is_used(torch: Any) -> bool:
    """A snapshot would begin with CUDA, which a program that uses no GPU must not be made to."""
    return bool(torch.cuda.is_initialized())


def _by_device(segments: list[dict[str, Any]]) -> dict[str, Any]:
    """Of each GPU its segments, and the pieces of them that are free by the power of two that is at most their size."""
    found: dict[str, Any] = {}
    for segment in segments:
        told = found.setdefault(
            str(segment["device"]), {"segments": 0, "reserved_bytes": 0, "largest_free_bytes": 0, "free": {}}
        )
        told["segments"] += 1
        told["reserved_bytes"] += segment["total_size"]
        for block in segment["blocks"]:
            size = block["size"]
            if block["state"] != "inactive" or size <= 0:
                continue
            told["largest_free_bytes"] = max(told["largest_free_bytes"], size)
            pieces = told["free"].setdefault(str(1 << size.bit_length() - 1), {"count": 0, "bytes": 0})
            pieces["count"] += 1
            pieces["bytes"] += size
    return found


HOOK = ("torch", tell_segments)
