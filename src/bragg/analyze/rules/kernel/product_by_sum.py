"""Products of tiles without `tl.dot`: sums over products of elements."""

from __future__ import annotations

from bragg.analyze.rules.kernel_rule import CompiledKernel, Confidence, Defect, HotKernel, Quantity, kernel_rule

# As products that no tensor core computes: an H100 multiplies in TF32 seven times as fast as without tensor cores.
_SAVED = 0.75
# What tl.dot takes at least along each dimension.
_LEAST_TILE = 16
_OUTER = 1  # summed over by a loop
_CHANGE = (
    "tl.dot(a, b) in place of tl.sum(a[:, :, None] * b[None, :, :], 1): tensor cores multiply tiles; of squared "
    "differences, a * a + b * b - 2 * a * b"
)
_CHANGE_OUTER = "load tiles of several columns and rows at once, and multiply them by tl.dot: tensor cores do"


def _judge(kernel: HotKernel, compiled: CompiledKernel) -> Defect | None:
    found = [
        each
        for each in compiled.products_by_sums or ()
        if min(each.m, each.n) >= _LEAST_TILE and (each.k >= _LEAST_TILE or each.k == _OUTER)
    ]
    if not found:
        return None
    worst = max(found, key=lambda each: (each.in_loop, each.m * each.n * each.k))
    is_outer = worst.k == _OUTER
    of_tiles = f"({worst.m}x{worst.k} by {worst.k}x{worst.n}) as a sum over {worst.m * worst.n * worst.k:,} products of"
    return Defect(
        f"multiplies matrices by outer products of {worst.m} by {worst.n} elements, one in each turn of a loop"
        if is_outer
        else f"multiplies tiles {of_tiles} elements",
        _CHANGE_OUTER if is_outer else _CHANGE,
        _SAVED,
        Confidence.PROVEN,
        [each.place for each in (worst, *found)],
        (Quantity("products of elements", worst.m * worst.n * worst.k), Quantity("such sums", len(found))),
    )


RULE = kernel_rule("product-by-sum", _judge, "products of tiles in Triton kernels that are written as sums", _CHANGE)
