"""Kernels that handle one number at a time."""

from __future__ import annotations

from functools import partial

from bragg.analyze.causes.hot_kernels import HotKernel
from bragg.analyze.causes.kernel_finding import Defect, kernel_findings
from bragg.analyze.causes.needs import CODE, OF_KERNELS
from bragg.analyze.causes.thresholds import MUCH_GPU, SHORT_LAUNCH
from bragg.analyze.engine import Rule
from bragg.model import Confidence, Quantity
from bragg.model.kernels.compiled import WARP, CompiledKernel

# Where a block does one thing with one number, all of its threads but one repeat it: twins took 93 to 99 % less.
_SAVED = 0.9
_CHANGE = "load a tile at once, tl.load(x + tl.arange(0, BLOCK)), and reduce it with tl.sum where one number is wanted"


def _judge(kernel: HotKernel, compiled: CompiledKernel) -> Defect | None:
    places = compiled.single_loads or ()
    threads = compiled.threads or WARP
    if not places or kernel.is_short:
        return None
    return Defect(
        f"loads one number at a time: all {threads} threads of a block do the same with it",
        _CHANGE,
        _SAVED,
        Confidence.LIKELY,
        places,
        (Quantity("such loads", len(places)), Quantity("threads", threads)),
    )


RULE = Rule(
    partial(kernel_findings, rule="single-loads", judge=_judge),
    "Triton kernels and loops in them that handle one number at a time",
    (OF_KERNELS, CODE),
    (MUCH_GPU, SHORT_LAUNCH),
    _CHANGE,
)
