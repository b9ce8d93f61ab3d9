"""Reductions of whole tiles in each turn of a loop."""

from __future__ import annotations

from functools import partial

from bragg.analyze.causes.hot_kernels import HotKernel
from bragg.analyze.causes.kernel_finding import Defect, kernel_findings
from bragg.analyze.causes.needs import CODE, GPU_TIME
from bragg.analyze.causes.thresholds import MUCH_GPU
from bragg.analyze.engine import Rule
from bragg.model import Confidence, Quantity
from bragg.model.kernels.compiled import CompiledKernel

__all__ = ["RULE"]

# Two barriers and a trip through shared memory in each turn. Where the loop loads, other blocks use the memory
# meanwhile: two kernels on an H100 became no faster, and nothing is estimated.
_SAVED = 0.2
_CHANGE = "combine tiles element by element in the loop, and reduce the one tile that is left after it"


def _judge(kernel: HotKernel, compiled: CompiledKernel) -> Defect | None:
    found = [each for each in compiled.reductions or () if each.in_loop and each.crosses_warps and each.is_only_carried]
    if not found:
        return None
    worst = max(found, key=lambda each: each.elements)
    return Defect(
        f"reduces a tile of {worst.elements:,} elements across warps in each turn of a loop, only to go on with it",
        _CHANGE,
        None if any(each.in_loop for each in compiled.accesses or ()) else _SAVED,
        Confidence.LIKELY,
        [each.place for each in (worst, *found)],
        (Quantity("elements", worst.elements), Quantity("reductions in loops", len(found))),
    )


RULE = Rule(
    partial(kernel_findings, rule="reduction-in-loop", judge=_judge),
    "reductions across warps in each turn of a loop whose result is needed after it only",
    (GPU_TIME, CODE),
    (MUCH_GPU,),
    _CHANGE,
)
