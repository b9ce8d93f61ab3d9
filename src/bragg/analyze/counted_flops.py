"""Floating-point operations of kernels whose instructions were counted."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from bragg.analyze.instruction_nodes import flops_by_offset, line_nodes, offset_bytes
from bragg.analyze.kernel_choice import every_kernel
from bragg.analyze.specs import WIDTHS
from bragg.model import Profile
from bragg.model.kernels.counted import COUNTED_LAUNCHES, EXECUTED, THREADS
from bragg.model.table import FloatArray

__all__ = ["counted_flops", "has_counted_flops"]


def has_counted_flops(profile: Profile) -> bool:
    """Whether instructions were counted so that flops follow from them."""
    return {EXECUTED, THREADS, COUNTED_LAUNCHES, "gpu_count"} <= profile.metrics.keys()


def counted_flops(profile: Profile) -> Mapping[int, FloatArray]:
    """What the timed launches of kernels made, if they are like those that were counted, which have no time.

    Returns:
        By width in bits, float64 [n_nodes]; 0 where nothing was counted, or the profile lacks the kernel's code.
    """
    found = {width: np.zeros(len(profile.tree)) for width in WIDTHS}
    if not has_counted_flops(profile):
        return found
    launches, timed = profile.own(COUNTED_LAUNCHES), profile.own("gpu_count")
    warps, threads = profile.own(EXECUTED), profile.own(THREADS)
    for kernel in every_kernel(profile):
        counted = [node for node in kernel.nodes if launches[node]]
        if not counted or kernel.code is None:
            continue
        flops = flops_by_offset(kernel.code.instruction_at)
        for node in counted:
            for below, _ in line_nodes(profile, [node]):
                offset = offset_bytes(profile, below)
                if offset in flops:
                    made = flops[offset]
                    of_counted = made.made(warps[below].item(), threads[below].item())
                    found[made.bits][node] += of_counted * timed[node] / launches[node]
    return found
