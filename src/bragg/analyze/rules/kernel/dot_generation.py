"""Products of tiles by tensor cores of an older generation than the GPU has."""

from __future__ import annotations

from bragg.analyze.rules.kernel_rule import CompiledKernel, Confidence, Defect, HotKernel, Quantity, kernel_rule
from bragg.model.kernels.compiled import TensorCores

# A group of warps of sm_90 multiplies 64 rows at once.
_GROUP_WARPS, _GROUP_ROWS = 4, 64
_HOPPER = "90"
# H100 SXM: mma.sync reaches about 0.6 of what wgmma does, with tiles that keep both busy; of 64 by 64, the same.
_SAVED, _SAVED_SMALL, _LARGE_TILE = 0.3, 0.05, 128 * 128
_CHANGE = "num_warps=4 or 8: wgmma needs groups of four warps"


def _judge(kernel: HotKernel, compiled: CompiledKernel) -> Defect | None:
    dots = [each for each in compiled.dots or () if each.in_loop and each.m >= _GROUP_ROWS]
    is_old = compiled.arch == _HOPPER and compiled.tensor_cores is TensorCores.MMA
    if not dots or not is_old or not compiled.num_warps or compiled.num_warps % _GROUP_WARPS == 0:
        return None
    worst = max(dots, key=lambda each: each.m * each.n * each.k)
    return Defect(
        f"multiplies tiles with mma.sync, not with wgmma of this GPU: it has {compiled.num_warps} warps",
        _CHANGE,
        _SAVED if worst.m * worst.n >= _LARGE_TILE else _SAVED_SMALL,
        Confidence.PROVEN,
        [each.place for each in (worst, *dots)],
        (Quantity("warps", compiled.num_warps), Quantity("rows of the tile", worst.m)),
        is_of_launch=True,
    )


RULE = kernel_rule(
    "old-tensor-cores", _judge, "products of tiles on sm_90 with tensor cores as those of sm_80", _CHANGE
)
