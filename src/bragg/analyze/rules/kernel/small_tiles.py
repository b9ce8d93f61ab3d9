"""Products of matrices in tiles so small that operands are loaded many times."""

from __future__ import annotations

from functools import partial

from bragg.analyze.causes.hot_kernels import HotKernel
from bragg.analyze.causes.kernel_finding import Defect, kernel_findings
from bragg.analyze.causes.needs import CODE, GPU_TIME, LAUNCHES
from bragg.analyze.causes.thresholds import MUCH_GPU, SHORT_LAUNCH, SMALL_TILE
from bragg.analyze.engine import Rule
from bragg.model import Confidence, Quantity
from bragg.model.kernels.compiled import CompiledKernel, TensorCores

__all__ = ["RULE"]

# With tiles twice as wide, each element is loaded half as often.
_LARGER = 64
_BLOCKS_OF_SM = 4
_CHANGE = "larger tiles, 64x64 and more, with tl.dot over at least 32: each element is loaded less often"


def _judge(kernel: HotKernel, compiled: CompiledKernel) -> Defect | None:
    dots, loops = compiled.dots or (), [each for each in compiled.loops or () if each.n_dots]
    if not dots or not loops or compiled.tensor_cores in (None, TensorCores.NONE) or not kernel.launches:
        return None
    worst = max(dots, key=lambda each: each.m * each.n * each.k)
    if max(worst.m, worst.n) > SMALL_TILE.value or kernel.mean_ns < SHORT_LAUNCH.value:
        return None
    blocks = kernel.launches[0].blocks
    larger = blocks * worst.m * worst.n / _LARGER**2
    if not kernel.num_sms or larger < _BLOCKS_OF_SM * kernel.num_sms:
        return None
    loads, loads_of_larger = (1 / m + 1 / n for m, n in ((worst.m, worst.n), (_LARGER, _LARGER)))
    return Defect(
        f"multiplies matrices in {blocks:,} tiles of {worst.m}x{worst.n}: each element is loaded once for "
        f"{min(worst.m, worst.n)} results",
        _CHANGE,
        1 - loads_of_larger / loads,
        Confidence.LIKELY,
        [worst.place],
        (Quantity("blocks", blocks), Quantity("rows of a tile", worst.m), Quantity("columns of a tile", worst.n)),
        is_of_launch=True,
    )


RULE = Rule(
    partial(kernel_findings, rule="small-tiles", judge=_judge),
    "products of matrices in Triton kernels with tiles of at most 32 by 32",
    (GPU_TIME, CODE, LAUNCHES),
    (MUCH_GPU, SMALL_TILE, SHORT_LAUNCH),
    _CHANGE,
)
