"""Kernels that handle one number at a time."""

from __future__ import annotations

from bragg.analyze.causes.thresholds import SHORT_LAUNCH
from bragg.analyze.rules.kernel_rule import CompiledKernel, Confidence, Defect, HotKernel, Quantity, kernel_rule
from bragg.model.kernels.compiled import WARP

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


RULE = kernel_rule(
    "single-loads", _judge, "Triton kernels and loops in them that handle one number at a time", _CHANGE, SHORT_LAUNCH
)
