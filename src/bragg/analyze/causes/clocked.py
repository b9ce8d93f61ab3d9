"""What rules about clocks inside of kernels share."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.causes.hot_kernels import HotKernel
from bragg.analyze.causes.kernel_finding import Defect, finding_of_kernel
from bragg.analyze.causes.needs import Need
from bragg.analyze.causes.thresholds import Threshold
from bragg.model import Finding, Place
from bragg.model.kernels.inside import InsideKernel, Stretch

CLOCKS = Need(
    "clocks inside of kernels",
    "--instrument",
    lambda evidence: any(each.level for each in evidence.profile.run.inside_kernels),
)
MUCH_WAITING = Threshold(0.2, "share", "of the time of warps that they wait", "well-pipelined products: 0.05 to 0.15")
EMPTY_TAIL = Threshold(0.1, "share", "of the places for blocks that are empty in the tail", "a tenth of the kernel")
UNEVEN = Threshold(0.15, "share", "by which the busiest multiprocessor works longer", "whole waves: below 0.05")


def clock_findings(
    evidence: Evidence, rule: str, judge: Callable[[HotKernel, InsideKernel], Defect | None]
) -> Iterator[Finding]:
    """At most one finding for each kernel that had clocks and whose time matters."""
    inside = {each.kernel: each for each in evidence.profile.run.inside_kernels if each.level}
    for kernel in evidence.hot_kernels:
        told = inside.get(kernel.name)
        defect = judge(kernel, told) if told else None
        if defect is not None:
            yield finding_of_kernel(evidence, rule, kernel, defect)


def share_of_warps(kernel: InsideKernel, stretches: Collection[Stretch], warps: Collection[int]) -> float:
    """Part of the time of some warps of each block that they spend in some stretches, 0 to 1."""
    spent = sum(each.cycles[warp] for each in stretches for warp in warps if warp < len(each.cycles))
    whole = sum(kernel.time_of_warp(warp) for warp in warps)
    return min(spent / whole, 1.0) if whole else 0.0


def places_of(stretches: Collection[Stretch]) -> list[Place]:
    """Where stretches are in the source, the longest first."""
    ranked = sorted(stretches, key=lambda each: -each.total)
    return [Place(each.lines[-1].file, each.lines[-1].line) for each in ranked if each.lines]
