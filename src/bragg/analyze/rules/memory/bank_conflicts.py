"""Tiles in shared memory that the lanes of a warp access one after the other."""

from __future__ import annotations

from functools import partial

from bragg.analyze.causes.hot_kernels import HotKernel
from bragg.analyze.causes.kernel_finding import Defect, kernel_findings
from bragg.analyze.causes.needs import CODE, GPU_TIME
from bragg.analyze.causes.thresholds import MANY_WAYS, MUCH_GPU
from bragg.analyze.engine import Rule
from bragg.model import Confidence, Quantity
from bragg.model.kernels.compiled import CompiledKernel, TensorCores

__all__ = ["RULE"]

# Without samples: products and loads of other blocks hide a part of what warps wait.
_SAVED = 0.2
_CHANGE = (
    "keep the tensor so that the dimension that the product sums over is contiguous, or use operands of 16 bits, "
    "which tensor cores read in both orders"
)


def _judge(kernel: HotKernel, compiled: CompiledKernel) -> Defect | None:
    found = [each for each in compiled.conflicts or () if each.in_loop and each.ways >= MANY_WAYS.value]
    # Without tensor cores the arithmetic takes longer.
    if not found or (compiled.dots and compiled.tensor_cores is TensorCores.NONE):
        return None
    worst = max(found, key=lambda each: each.ways * each.elements * each.element_bytes)
    places = [each.place for each in (worst, *found)]
    share, is_measured = kernel.share_of_lines(places)
    verb = "writes" if worst.is_store else "reads"
    return Defect(
        f"{verb} a tile in shared memory with {worst.ways} lanes of a warp in one bank, in each turn of a loop",
        _CHANGE,
        share * (1 - 1 / worst.ways) if is_measured else _SAVED,
        Confidence.LIKELY if is_measured else Confidence.HEURISTIC,
        places,
        (
            Quantity("lanes in one bank", worst.ways),
            Quantity("size of the tile", worst.elements * worst.element_bytes, "B"),
            *([Quantity("share of its samples", share, "share")] if is_measured else []),
        ),
        is_measured,
    )


RULE = Rule(
    partial(kernel_findings, rule="bank-conflicts", judge=_judge),
    "tiles in shared memory for which lanes of a warp wait for each other, in loops of Triton kernels",
    (GPU_TIME, CODE),
    (MUCH_GPU, MANY_WAYS),
    _CHANGE,
)
