"""Kernels that need more registers than there are."""

from __future__ import annotations

from functools import partial

from bragg.analyze.causes.hot_kernels import HotKernel
from bragg.analyze.causes.kernel_finding import Defect, kernel_findings
from bragg.analyze.causes.needs import CODE, GPU_TIME
from bragg.analyze.causes.thresholds import MUCH_GPU, SPILLED
from bragg.analyze.engine import Rule
from bragg.model import Confidence, Place, Quantity
from bragg.model.kernels.compiled import CompiledKernel

__all__ = ["RULE"]

# An access to local memory takes longer than the arithmetic around it.
_COST, _MOST = 2.0, 0.5
_CHANGE = "use more warps or a smaller tile, fewer stages, or a higher maxnreg where one is set"


def _judge(kernel: HotKernel, compiled: CompiledKernel) -> Defect | None:
    spilled = sum(each.count for each in compiled.spills or ())
    total = sum(each.count for each in compiled.instructions or ())
    if not spilled or not compiled.stack_bytes or spilled < SPILLED.value * total:
        return None
    in_loops = _lines_in_loops(compiled)
    counted = sorted(compiled.spills or (), key=lambda each: (each.place.file, each.place.line) not in in_loops)
    warps = f" with {compiled.num_warps} warps" if compiled.num_warps else ""
    return Defect(
        f"spills registers{warps}: {spilled:,} instructions move them to local memory and back",
        _CHANGE,
        min(spilled / total * _COST, _MOST),
        Confidence.PROVEN,
        [each.place for each in counted],
        (
            Quantity("instructions that spill", spilled),
            Quantity("share of the instructions", spilled / total, "share"),
            Quantity("stack of a thread", compiled.stack_bytes, "B"),
            *([Quantity("registers of a thread", compiled.registers)] if compiled.registers else []),
        ),
    )


def _lines_in_loops(compiled: CompiledKernel) -> set[tuple[str, int]]:
    """Lines that surely run in a loop."""
    accesses = [each.place for each in compiled.accesses or () if each.in_loop]
    dots: list[Place] = [each.place for each in compiled.dots or () if each.in_loop]
    return {(place.file, place.line) for place in (*accesses, *dots)}


RULE = Rule(
    partial(kernel_findings, rule="register-spills", judge=_judge),
    "kernels that spill registers",
    (GPU_TIME, CODE),
    (MUCH_GPU, SPILLED),
    _CHANGE,
)
