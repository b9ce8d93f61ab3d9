"""Grids with fewer blocks than the GPU has multiprocessors."""

from __future__ import annotations

from bragg.analyze.causes.kernel_finding import counted_text
from bragg.analyze.causes.least_time import moving_ns
from bragg.analyze.causes.needs import CODE, GPU_TIME, LAUNCHES
from bragg.analyze.causes.thresholds import SHORT_LAUNCH
from bragg.analyze.rules.kernel_rule import CompiledKernel, Confidence, Defect, HotKernel, Quantity, kernel_rule

_CHANGE = "a smaller tile, or a grid over one more dimension (split the sum over k, or rows): more blocks"


def _judge(kernel: HotKernel, compiled: CompiledKernel) -> Defect | None:
    if not kernel.launches or not kernel.num_sms or kernel.is_short:
        return None
    total = sum(launch.count for launch in kernel.launches)
    few = [launch for launch in kernel.launches if launch.blocks * 2 <= kernel.num_sms]
    if sum(launch.count for launch in few) * 2 < total:
        return None
    blocks = few[0].blocks
    return Defect(
        f"is launched with {counted_text(blocks, 'block')} on {kernel.num_sms} multiprocessors",
        _CHANGE,
        _saved(kernel, compiled, blocks),
        Confidence.LIKELY,
        (),
        (
            Quantity("blocks", blocks),
            Quantity("multiprocessors", kernel.num_sms),
            Quantity("GPU time of a launch", kernel.mean_ns, "ns"),
        ),
    )


def _saved(kernel: HotKernel, compiled: CompiledKernel, blocks: int) -> float:
    """As if the blocks parted over all multiprocessors, until memory bounds them.

    8 blocks became 19 and 24 times as fast on an H200 (16 by this); on an H100 16 did 19 times (8), 32 2.5 times (4).
    """
    moving = (moving_ns(kernel, compiled) or 0.0) / kernel.mean_ns
    return max(1 - max(blocks / kernel.num_sms, moving), 0.0)


RULE = kernel_rule(
    "few-blocks",
    _judge,
    "grids of Triton kernels with at most half as many blocks as there are multiprocessors",
    _CHANGE,
    SHORT_LAUNCH,
    needs=(GPU_TIME, CODE, LAUNCHES),
)
