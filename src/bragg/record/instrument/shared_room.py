"""How much shared memory a kernel leaves for readings."""

from __future__ import annotations

from bragg.code.instrument.storing import SharedMemory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


# Of a warp: 16 to 128 frames of the largest size.
_WARP_BYTES = (8192, 4096, 2048, 1024)
# Of static memory, for which a launch does not have to ask. Source: CUDA C++ Programming Guide, Compute Capabilities.
_MAX_BYTES = 48 << 10


def shared_room(warps: int, blocks_at_once: Callable[[int], int]) -> SharedMemory | None:
    """The most shared memory with which as many blocks fit on the GPU as without; None: there is none.

    Args:
        warps: Of a block, that store.
        blocks_at_once: That fit with so many bytes more in each.
    """
    wanted = blocks_at_once(0)
    for warp_bytes in _WARP_BYTES:
        found = SharedMemory(warps, warp_bytes)
        if wanted and found.size_bytes <= _MAX_BYTES and blocks_at_once(found.size_bytes) == wanted:
            return found
    return None
