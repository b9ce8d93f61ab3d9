"""Products of tiles without `tl.dot`: sums over products of elements."""

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

# As products that no tensor core computes: an H100 multiplies in TF32 seven times as fast as without tensor cores.
_SAVED = 0.75
# What tl.dot takes at least along each dimension.
_LEAST_TILE = 16
_CHANGE = "tl.dot(a, b) in place of tl.sum(a[:, :, None] * b[None, :, :], 1): tensor cores multiply tiles"


def _judge(kernel: HotKernel, compiled: CompiledKernel) -> Defect | None:
    found = [each for each in compiled.products_by_sums or () if min(each.m, each.n, each.k) >= _LEAST_TILE]
    if not found:
        return None
    worst = max(found, key=lambda each: (each.in_loop, each.m * each.n * each.k))
    return Defect(
        f"multiplies tiles ({worst.m}x{worst.k} by {worst.k}x{worst.n}) as a sum over {worst.m * worst.n * worst.k:,} "
        "products of elements",
        _CHANGE,
        _SAVED,
        Confidence.PROVEN,
        [each.place for each in (worst, *found)],
        (Quantity("products of elements", worst.m * worst.n * worst.k), Quantity("such sums", len(found))),
    )


RULE = Rule(
    partial(kernel_findings, rule="product-by-sum", judge=_judge),
    "products of tiles in Triton kernels that are written as sums",
    (GPU_TIME, CODE),
    (MUCH_GPU,),
    _CHANGE,
)
