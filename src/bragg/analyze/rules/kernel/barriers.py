"""Barriers in loops that order nothing."""

from __future__ import annotations

from bragg.analyze.causes.kernel_finding import counted_text
from bragg.analyze.rules.kernel_rule import CompiledKernel, Confidence, Defect, HotKernel, Quantity, kernel_rule

# Sums of rows took 15 % less without on an H200, two others as long as with it on an H100.
_SAVED = 0.05
_CHANGE = "remove tl.debug_barrier: Triton adds the barriers that a kernel needs"


def _judge(_: HotKernel, compiled: CompiledKernel) -> Defect | None:
    barriers = compiled.idle_barriers or ()
    if not barriers:
        return None
    return Defect(
        f"has {counted_text(len(barriers), 'barrier')} in loops that write nothing another thread could read",
        _CHANGE,
        _SAVED,
        Confidence.PROVEN,
        barriers,
        (Quantity("barriers", len(barriers)),),
    )


RULE = kernel_rule("idle-barrier", _judge, "barriers in loops of Triton kernels that order nothing", _CHANGE)
