"""How much a kernel asks of memory at once: too little cannot use its bandwidth, however many bytes there are."""

from __future__ import annotations

from bragg.analyze.causes.hot_kernels import HotKernel
from bragg.analyze.occupancy import resident_blocks
from bragg.analyze.specs import find

# From a load to its data, where the memory is busy: 600 ns of 450 to 800 on an H100.
_LATENCY_S = 600e-9


def share_in_flight(kernel: HotKernel) -> float | None:
    """Bytes that blocks load at once, of those that use the whole bandwidth by Little's law, 0 to 1; None: not known.

    A block loads the tiles of one turn of its loop at once, or those of all stages but one.
    """
    compiled, bytes_per_s = kernel.compiled, find(kernel.device).bytes_per_s
    if compiled is None or not compiled.accesses or not kernel.launches or not kernel.num_sms or not bytes_per_s:
        return None
    launch = kernel.launches[0]
    x, y, z = launch.block
    fitting = resident_blocks(str(kernel.device.get("arch", "")), x * y * z, launch.registers, launch.shared_bytes)
    resident = min(fitting, -(-launch.blocks // kernel.num_sms))
    loads = [each for each in compiled.accesses if not each.is_store]
    tiles = sum(each.size_bytes for each in loads if each.in_loop == any(one.in_loop for one in loads))
    ahead = max((loop.buffers or 1 for loop in compiled.loops or ()), default=1)
    needed = bytes_per_s * _LATENCY_S / kernel.num_sms
    return min(resident * tiles * max(ahead - 1, 1) / needed, 1.0) if resident else None
