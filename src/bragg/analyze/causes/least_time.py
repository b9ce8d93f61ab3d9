"""How long a launch takes that nothing bounds but the bytes of its tiles, or its products of tiles."""

from __future__ import annotations

import re
from dataclasses import replace

from bragg.analyze.causes.hot_kernels import HotKernel
from bragg.analyze.causes.issuing import moved_bytes
from bragg.analyze.specs import find
from bragg.model.kernels.compiled import CompiledKernel

# Repaired twins of 17 slow kernels reached 59 to 92 % of an H100's or H200's bandwidth.
_ATTAINED_BYTES = 0.8
# Products of 4096 in TF32 reached 45 % of an H100's peak, Triton's in 16 bits 24 to 57 % of an H200's.
_ATTAINED_FLOPS = 0.45
_BITS = re.compile(r"\d+")  # of `bf16`, `f8E5M2`


def moving_ns(kernel: HotKernel, compiled: CompiledKernel) -> float | None:
    """Time to move the tiles of a launch once, at the bandwidth that kernels reach; None: not known.

    Tiles that could not be moved in the time of the launch overlap, or masks that are not known drop a part of them.
    """
    bytes_per_s, blocks = find(kernel.device).bytes_per_s, _blocks(kernel)
    accesses = compiled.accesses
    if not bytes_per_s or not blocks or not accesses or any(each.times is None for each in accesses):
        return None
    if not kernel.has_one_grid and any(each.times != 1 for each in accesses):
        return None
    kept = [replace(each, elements=each.needed) for each in accesses]
    at_peak_ns = blocks * moved_bytes(kept) / bytes_per_s * 1e9
    return at_peak_ns / _ATTAINED_BYTES if at_peak_ns <= kernel.mean_ns else None


def multiplying_ns(kernel: HotKernel, compiled: CompiledKernel) -> float | None:
    """Time of the products of a launch on tensor cores, at the rate that kernels reach; None: not known."""
    dots = compiled.dots or ()
    bits = max((int(_BITS.findall(each.operand)[0]) for each in dots), default=0)
    flops_per_s, blocks = find(kernel.device).flops_per_s.get(bits), _blocks(kernel)
    loops = [each for each in compiled.loops or () if each.n_dots]
    turns = loops[0].turns if len(loops) == 1 else None
    if not flops_per_s or not turns or not kernel.has_one_grid or not all(each.in_loop for each in dots):
        return None
    flops = blocks * turns * sum(2 * each.m * each.n * each.k for each in dots)
    return flops / (flops_per_s * _ATTAINED_FLOPS) * 1e9


def _blocks(kernel: HotKernel) -> float:
    """Blocks of a launch, on average; 0: not known."""
    count = sum(launch.count for launch in kernel.launches)
    return sum(launch.count * launch.blocks for launch in kernel.launches) / count if count else 0.0
