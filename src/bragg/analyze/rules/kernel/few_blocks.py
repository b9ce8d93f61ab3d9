"""Grids with fewer blocks than the GPU has multiprocessors."""

from __future__ import annotations

from functools import partial

from bragg.analyze.causes.hot_kernels import HotKernel
from bragg.analyze.causes.kernel_finding import Defect, counted_text, kernel_findings
from bragg.analyze.causes.needs import CODE, GPU_TIME, LAUNCHES
from bragg.analyze.causes.thresholds import MUCH_GPU, SHORT_LAUNCH
from bragg.analyze.engine import Rule
from bragg.model import Confidence, Quantity
from bragg.model.kernels.compiled import CompiledKernel

__all__ = ["RULE"]

# Of what would be saved if blocks parted perfectly: they share memory, and several on one multiprocessor hide waits.
# 16 blocks instead of 1,056 cost 94 % of the time on an H100, where one for each of 132 would save 88 %.
_SAVED = 0.8
_CHANGE = "a smaller tile, or a grid over one more dimension (split the sum over k, or rows): more blocks"


def _judge(kernel: HotKernel, compiled: CompiledKernel) -> Defect | None:
    if not kernel.launches or not kernel.num_sms or kernel.mean_ns < SHORT_LAUNCH.value:
        return None
    total = sum(launch.count for launch in kernel.launches)
    few = [launch for launch in kernel.launches if launch.blocks * 2 <= kernel.num_sms]
    if sum(launch.count for launch in few) * 2 < total:
        return None
    blocks = few[0].blocks
    return Defect(
        f"is launched with {counted_text(blocks, 'block')} on {kernel.num_sms} multiprocessors",
        _CHANGE,
        (1 - blocks / kernel.num_sms) * _SAVED,
        Confidence.LIKELY,
        (),
        (
            Quantity("blocks", blocks),
            Quantity("multiprocessors", kernel.num_sms),
            Quantity("GPU time of a launch", kernel.mean_ns, "ns"),
        ),
    )


RULE = Rule(
    partial(kernel_findings, rule="few-blocks", judge=_judge),
    "grids of Triton kernels with at most half as many blocks as there are multiprocessors",
    (GPU_TIME, CODE, LAUNCHES),
    (MUCH_GPU, SHORT_LAUNCH),
    _CHANGE,
)
