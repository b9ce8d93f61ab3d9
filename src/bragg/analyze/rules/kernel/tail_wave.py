"""Grids whose last wave of blocks leaves most of the GPU empty."""

from __future__ import annotations

import math

from bragg.analyze.causes.needs import CODE, GPU_TIME, LAUNCHES
from bragg.analyze.causes.thresholds import SHORT_LAUNCH, WASTED_WAVE
from bragg.analyze.kernel_facts import Configuration
from bragg.analyze.occupancy import resident_blocks
from bragg.analyze.rules.kernel_rule import CompiledKernel, Confidence, Defect, HotKernel, Quantity, kernel_rule

# Blocks of the last wave share memory with fewer others, and are faster.
_SAVED = 0.5
_CHANGE = "another tile, whose blocks fill whole waves, or a persistent kernel with one block for each place"


def _judge(kernel: HotKernel, compiled: CompiledKernel) -> Defect | None:
    if not kernel.launches or kernel.is_short:
        return None
    launch = kernel.launches[0]
    places = _places(kernel, launch)
    if not places or launch.blocks <= places:
        return None
    waves = launch.blocks / places
    waste = 1 - waves / math.ceil(waves)
    last = launch.blocks - places * (math.ceil(waves) - 1)
    # A kernel without products of tiles waits for memory, which fewer blocks keep as busy: one on each multiprocessor.
    is_enough = last >= kernel.num_sms and not compiled.dots
    if waste < WASTED_WAVE.value or is_enough:
        return None
    return Defect(
        f"takes {math.ceil(waves)} waves for {launch.blocks:,} blocks: {places:,} fit on the GPU at once, "
        f"and the last wave has {last:,}",
        _CHANGE,
        waste * _SAVED,
        Confidence.HEURISTIC,
        (),
        (Quantity("waves", waves), Quantity("blocks", launch.blocks), Quantity("empty", waste, "share")),
    )


def _places(kernel: HotKernel, launch: Configuration) -> int:
    """Blocks that fit on the GPU at once; 0: not known."""
    x, y, z = launch.block
    arch = str(kernel.device.get("arch", ""))
    return resident_blocks(arch, x * y * z, launch.registers, launch.shared_bytes) * kernel.num_sms


RULE = kernel_rule(
    "tail-wave",
    _judge,
    "grids of Triton kernels whose last wave is nearly empty",
    _CHANGE,
    WASTED_WAVE,
    SHORT_LAUNCH,
    needs=(GPU_TIME, CODE, LAUNCHES),
)
