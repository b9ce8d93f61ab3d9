"""Loops over products of tiles that a mask drops, as those above the diagonal of causal attention."""

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

# Of a square, half of the tiles are above the diagonal; the longest program still takes all turns: 28 % on an H100.
_SAVED = 0.35
_CHANGE = "end the loop at the last turn that the mask leaves: range(0, (tl.program_id(0) + 1) * BLOCK_M, BLOCK_N)"


def _judge(_: HotKernel, compiled: CompiledKernel) -> Defect | None:
    loops = compiled.masked_loops or ()
    if not loops:
        return None
    return Defect(
        "takes all turns of a loop in each program, and a mask by program and turn drops what some of them compute",
        _CHANGE,
        _SAVED,
        Confidence.LIKELY,
        loops,
        (Quantity("such loops", len(loops)),),
    )


RULE = Rule(
    partial(kernel_findings, rule="masked-products", judge=_judge),
    "loops of Triton kernels over products of tiles that a mask drops as a whole",
    (GPU_TIME, CODE),
    (MUCH_GPU,),
    _CHANGE,
)
