"""Grids of so many small blocks that launching them takes longer than their work."""

from __future__ import annotations

from bragg.analyze.causes.needs import CODE, GPU_TIME, LAUNCHES
from bragg.analyze.causes.thresholds import BLOCK_LAUNCH, NEAR_ROOF, SHORT_LAUNCH
from bragg.analyze.rules.kernel_rule import CompiledKernel, Confidence, Defect, HotKernel, Quantity, kernel_rule
from bragg.analyze.specs import find

_CHANGE = "a larger tile for each program, or several tiles in a loop: fewer blocks"


def _judge(kernel: HotKernel, compiled: CompiledKernel) -> Defect | None:
    if not kernel.launches or not kernel.num_sms or kernel.is_short:
        return None
    blocks = kernel.launches[0].blocks
    block_ns = kernel.mean_ns * kernel.num_sms / blocks if blocks else 0.0
    bytes_per_s = find(kernel.device).bytes_per_s
    accesses = compiled.accesses
    if not 0 < block_ns < BLOCK_LAUNCH.value or not bytes_per_s or not accesses:
        return None
    block_bytes = sum(each.size_bytes for each in accesses)
    of_roof = blocks * block_bytes / (kernel.mean_ns * 1e-9) / bytes_per_s
    # What loops read is not known, and what computes is not bound by memory.
    if compiled.dots or any(each.in_loop for each in accesses) or of_roof >= NEAR_ROOF.value:
        return None
    return Defect(
        f"has {blocks:,} blocks of {block_bytes:,} B each: a multiprocessor ends one every {block_ns:.0f} ns, "
        "about as fast as it can start them",
        _CHANGE,
        1 - of_roof,
        Confidence.LIKELY,
        (),
        (
            Quantity("blocks", blocks),
            Quantity("memory of a block", block_bytes, "B"),
            Quantity("time of a block on its multiprocessor", block_ns, "ns"),
            Quantity("share of the memory bandwidth", of_roof, "share"),
        ),
    )


RULE = kernel_rule(
    "small-blocks",
    _judge,
    "grids of Triton kernels whose blocks take hardly longer than their start",
    _CHANGE,
    BLOCK_LAUNCH,
    NEAR_ROOF,
    SHORT_LAUNCH,
    needs=(GPU_TIME, CODE, LAUNCHES),
)
