"""What clocks inside of kernels said, as nodes below the launches that had them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from bragg.formats.captured.growth import Growth, padded
from bragg.formats.limits import Limits
from bragg.model import FrameKind, Metric, MetricKind, Profile
from bragg.model.kernels.inside import WITH_CLOCKS, InsideKernel

__all__ = ["CYCLES", "WAITING", "with_clocks"]

CYCLES, WAITING = "warp_cycles", "warp_wait_cycles"
_OTHER = "<between what has clocks>"
_READING = "<reading the clocks>"


def with_clocks(profile: Profile, limits: Limits) -> Profile:
    """The profile with a node for each stretch that was timed, below its lines and its kernel's launches with clocks.

    A launch's cycles stand under the call path with most of these launches: it was one of them.

    Raises:
        TooLargeError: There are too many stretches for the file's size.
    """
    growth = Growth(len(profile.tree), len(profile.tree.frames))
    found = [
        row
        for kernel in profile.run.inside_kernels
        if (node := _launches(profile, kernel)) is not None
        for row in _grow(growth, node, kernel)
    ]
    if not found:
        return profile
    limits.check_metrics(2, growth.n_nodes)
    tree = growth.applied_to(profile.tree)
    metrics = {name: padded(metric, len(tree)) for name, metric in profile.metrics.items()}
    nodes = np.array([node for node, _, _ in found], np.int64)
    for name, cycles in (
        (CYCLES, [cycles for _, cycles, _ in found]),
        (WAITING, [cycles if is_wait else 0 for _, cycles, is_wait in found]),
    ):
        own = np.zeros(len(tree), np.int64)
        np.add.at(own, nodes, cycles)
        metrics[name] = Metric(name, "cycles", MetricKind.INCLUSIVE, own)
    return replace(profile, tree=tree, metrics=metrics)


def _launches(profile: Profile, kernel: InsideKernel) -> int | None:
    """The node of most launches with clocks; None: there are none."""
    frames = profile.tree.frames
    named = [row for row, name in enumerate(frames.name) if name == kernel.kernel + WITH_CLOCKS]
    nodes = np.flatnonzero(np.isin(profile.tree.frame, named) & (profile.tree.kind == FrameKind.KERNEL))
    if not kernel.stretches or not len(nodes):
        return None
    launches = profile.metrics.get("gpu_count")
    return int(nodes[0] if launches is None else nodes[launches.own[nodes].argmax()])


def _grow(growth: Growth, launch: int, kernel: InsideKernel) -> list[tuple[int, int, bool]]:
    """Node, cycles and whether it is a wait, for each stretch."""
    rows = []
    for stretch in kernel.stretches:
        node = launch
        for line in reversed(stretch.lines):
            node = growth.child(node, line.function, line.file, line.line)
        rows.append((growth.child(node, stretch.does), stretch.total, stretch.is_wait))
    if kernel.clock_cycles:
        rows.append((growth.child(launch, _READING), kernel.clock_cycles, False))
    return [*rows, (growth.child(launch, _OTHER), kernel.other_cycles, False)]
