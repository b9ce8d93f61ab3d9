"""How long the instructions of a kernel take to issue, beside its bytes to move."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from bragg.analyze.causes.hot_kernels import HotKernel
from bragg.analyze.specs import find
from bragg.model.kernels.compiled import Access, CompiledKernel

_SCHEDULERS = 4  # of a multiprocessor, since sm_70; each issues one instruction of a warp in a cycle


@dataclass(frozen=True)
class BlockTimes:
    """What a block adds to the time of its kernel where one thing alone bounds it; with loops, in a turn of them.

    Attributes:
        issuing_s: Of all its instructions, once each.
        moving_s: Of the tiles that it loads and stores; of each tensor the largest, as caches hold its neighbours.
        most_moving_s: Of these if caches hold nothing: each access moves its own.
        is_of_turn: Whether they are those of a turn.
    """

    issuing_s: float
    moving_s: float
    most_moving_s: float
    is_of_turn: bool


def block_times(kernel: HotKernel, compiled: CompiledKernel) -> BlockTimes | None:
    """The times of a block; None: the machine code or the GPU is not known."""
    accesses = compiled.accesses or ()
    of_turn = [each for each in accesses if each.in_loop]
    bytes_per_s = find(kernel.device).bytes_per_s
    issued_per_s = _SCHEDULERS * kernel.num_sms * float(kernel.device.get("clock_khz") or 0) * 1e3
    if not bytes_per_s or not issued_per_s or not compiled.instructions or not compiled.num_warps:
        return None
    return BlockTimes(
        sum(each.count for each in compiled.instructions) * compiled.num_warps / issued_per_s,
        moved_bytes([replace(each, times=1) for each in of_turn or accesses]) / bytes_per_s,
        sum(each.size_bytes for each in of_turn or accesses) / bytes_per_s,
        bool(of_turn),
    )


def moved_bytes(accesses: Sequence[Access]) -> int:
    """What a block moves between memory and caches: of each tensor the largest, as caches hold its neighbours."""
    largest: dict[tuple[str, bool], int] = {}
    for each in accesses:
        key, size = (each.tensor, each.is_store), each.size_bytes * (each.times or 0)
        largest[key] = max(size, largest.get(key, 0)) if each.tensor else largest.get(key, 0) + size
    return sum(largest.values())
