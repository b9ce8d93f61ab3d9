"""How many warps of a kernel a multiprocessor can hold at once, and what limits them."""

from __future__ import annotations

from dataclasses import dataclass

from bragg.model.kernels.compiled import WARP

_REGISTERS = 65_536
# Registers are given to warps in blocks of 256, and to warps four at a time.
_REGISTER_BLOCK, _WARP_BLOCK = 256, 4
# From sm_80 on shared memory is given in blocks of 128 bytes, and the system takes 1 kB of each block of threads.
_SHARED_BLOCK, _SYSTEM_SHARED_BYTES = 128, 1024


@dataclass(frozen=True)
class _Multiprocessor:
    threads: int
    blocks: int
    shared_bytes: int
    system_shared_bytes: int = _SYSTEM_SHARED_BYTES
    shared_block: int = _SHARED_BLOCK


_THOR = _Multiprocessor(1536, 24, 228 << 10)
_RTX_BLACKWELL = _Multiprocessor(1536, 24, 100 << 10)
# Source: CUDA C++ Programming Guide, "Technical Specifications per Compute Capability"; sm_101 and later from
# cuda_occupancy.h of CUDA 13.5 and arch_traits.h of CCCL 3, by which the others were checked.
_MULTIPROCESSORS = {
    "70": _Multiprocessor(2048, 32, 96 << 10, 0, 256),
    "72": _Multiprocessor(2048, 32, 96 << 10, 0, 256),
    "75": _Multiprocessor(1024, 16, 64 << 10, 0, 256),
    "80": _Multiprocessor(2048, 32, 164 << 10),
    "86": _Multiprocessor(1536, 16, 100 << 10),
    "87": _Multiprocessor(1536, 16, 164 << 10),
    "89": _Multiprocessor(1536, 24, 100 << 10),
    "90": _Multiprocessor(2048, 32, 228 << 10),
    "100": _Multiprocessor(2048, 32, 228 << 10),
    "101": _THOR,
    "103": _Multiprocessor(2048, 32, 228 << 10),
    "110": _THOR,
    "120": _RTX_BLACKWELL,
    "121": _RTX_BLACKWELL,
}


def occupancy(arch: str, threads: int, registers: int, shared_bytes: int) -> tuple[float | None, str]:
    """Share of a multiprocessor's warps that can be resident, and what keeps it from being more.

    Args:
        arch: `90`; of NVIDIA.
        threads: Of one block.
        registers: Of one thread.
        shared_bytes: Of one block.

    Returns:
        0 to 1, and `registers`, `shared memory`, `threads` or `blocks`; empty where all warps fit. None and an empty
        text for an unknown device, or a block that does not fit.
    """
    device, blocks = _MULTIPROCESSORS.get(arch), _blocks_by_limit(arch, threads, registers, shared_bytes)
    if device is None or not blocks:
        return None, ""
    limit = min(blocks, key=lambda name: blocks[name])
    share = blocks[limit] * _warps(threads) * WARP / device.threads
    return (share, "" if share == 1 else limit) if share else (None, "")


def resident_blocks(arch: str, threads: int, registers: int, shared_bytes: int) -> int:
    """How many blocks fit on a multiprocessor at once, by the arguments of `occupancy`; 0: not known, or none."""
    return min(_blocks_by_limit(arch, threads, registers, shared_bytes).values(), default=0)


def _blocks_by_limit(arch: str, threads: int, registers: int, shared_bytes: int) -> dict[str, int]:
    """Blocks of a multiprocessor as each limit allows; none for an unknown device."""
    device = _MULTIPROCESSORS.get(arch)
    if device is None or threads <= 0:
        return {}
    warps = _warps(threads)
    return {
        "threads": device.threads // (warps * WARP),
        "blocks": device.blocks,
        "registers": _warps_by_registers(registers) // warps if registers else device.blocks,
        "shared memory": device.shared_bytes // _shared_of_block(device, shared_bytes),
    }


def _warps(threads: int) -> int:
    return -(-threads // WARP)


def _warps_by_registers(registers: int) -> int:
    of_warp = _rounded_up(registers * WARP, _REGISTER_BLOCK)
    return _REGISTERS // of_warp // _WARP_BLOCK * _WARP_BLOCK


def _shared_of_block(device: _Multiprocessor, shared_bytes: int) -> int:
    return max(_rounded_up(shared_bytes + device.system_shared_bytes, device.shared_block), 1)


def _rounded_up(value: int, step: int) -> int:
    return -(-value // step) * step
