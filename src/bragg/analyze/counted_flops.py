"""Floating-point operations of kernels whose instructions were counted."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from bragg.analyze.instruction_nodes import flops_by_offset, line_nodes, offset_bytes
from bragg.analyze.kernel_choice import every_kernel
from bragg.analyze.specs import WIDTHS
from bragg.code.sass.flops import InstructionFlops
from bragg.model import Profile
from bragg.model.ids import NodeId
from bragg.model.kernels.counted import COUNTED_LAUNCHES, EXECUTED, THREADS
from bragg.model.table import FloatArray


def has_counted_flops(profile: Profile) -> bool:
    """Whether instructions were counted so that flops follow from them."""
    return {EXECUTED, THREADS, COUNTED_LAUNCHES, "gpu_count"} <= profile.metrics.keys()


def counted_flops(profile: Profile) -> Mapping[int, FloatArray]:
    """What the timed launches of kernels made, if they are like those that were counted, which have no time.

    A call path where nothing was counted has what the kernel made elsewhere, if all launches of the kernel had one
    configuration and each path with counts says the same of a launch.

    Returns:
        By width in bits, float64 [n_nodes]; 0 where nothing is known, or the profile lacks the kernel's code.
    """
    found = {width: np.zeros(len(profile.tree)) for width in WIDTHS}
    if not has_counted_flops(profile):
        return found
    launches, timed = profile.own(COUNTED_LAUNCHES), profile.own("gpu_count")
    frame = profile.tree.frame
    of_one_configuration = _frames_of_one_configuration(profile)
    for kernel in every_kernel(profile):
        counted = [node for node in kernel.nodes if launches[node]]
        if not counted or kernel.code is None:
            continue
        made = flops_by_offset(kernel.code.instruction_at)
        of_launch = {node: _of_counted(profile, node, made) / launches[node] for node in counted}
        for node in kernel.nodes:
            elsewhere = [of_launch[other] for other in counted if frame[other] == frame[node]]
            if node in of_launch:
                each = of_launch[node]
            elif int(frame[node]) in of_one_configuration and _are_equal(elsewhere):
                each = elsewhere[0]
            else:
                continue
            for width, flops in zip(WIDTHS, each, strict=True):
                found[width][node] = flops * timed[node]
    return found


def _of_counted(profile: Profile, node: NodeId, made: Mapping[int, InstructionFlops]) -> FloatArray:
    """What the counted launches of a node made, by width: [n_widths]."""
    warps, threads = profile.own(EXECUTED), profile.own(THREADS)
    total = dict.fromkeys(WIDTHS, 0.0)
    for below, _ in line_nodes(profile, [node]):
        offset = offset_bytes(profile, below)
        if offset is not None and offset in made:
            total[made[offset].bits] += made[offset].made(warps[below].item(), threads[below].item())
    return np.array(list(total.values()))


def _frames_of_one_configuration(profile: Profile) -> set[int]:
    frames, configurations = np.unique(profile.kernels.combined().frame, return_counts=True)
    return set(frames[configurations == 1].tolist())


def _are_equal(of_launch: list[FloatArray]) -> bool:
    return bool(of_launch) and np.allclose(of_launch, of_launch[0], rtol=1e-9)
