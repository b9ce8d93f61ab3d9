"""Products of matrices in tiles so small that operands are loaded many times."""

from __future__ import annotations

from bragg.analyze.causes.least_time import multiplying_ns
from bragg.analyze.causes.needs import CODE, LAUNCHES, OF_KERNELS
from bragg.analyze.causes.thresholds import SHORT_LAUNCH, SMALL_TILE
from bragg.analyze.kernel_facts import Configuration
from bragg.analyze.rules.kernel_rule import CompiledKernel, Confidence, Defect, HotKernel, Quantity, kernel_rule
from bragg.model.kernels.compiled import Dot, TensorCores

# With tiles twice as wide, each element is loaded half as often: those of 32x32 became 3.7 to 4.9 times as fast on an
# H200 with 128x128, those of 16x16 16 times.
_LARGER, _LARGEST = 64, 128
_BLOCKS_OF_SM = 4
_SEVERAL = 4
# Tensor cores sum over 16 columns of 16 bits at once: products of 2048 to 8192 by tiles of 128x128 took 36 to 42 % less
# with 64 in a turn on an H100.
_SHORT_SUM, _SAVED_OF_SUMS = 16, 0.4
_CHANGE_OF_SUMS = "BLOCK_K=64: more is multiplied between two waits for loads"
_CHANGE = "larger tiles, 64x64 and more, with tl.dot over at least 32: each element is loaded less often"


def _judge(kernel: HotKernel, compiled: CompiledKernel) -> Defect | None:
    dots, loops = compiled.dots or (), [each for each in compiled.loops or () if each.n_dots]
    if not dots or not loops or compiled.tensor_cores in (None, TensorCores.NONE) or not kernel.launches:
        return None
    worst = max(dots, key=lambda each: each.m * each.n * each.k)
    if kernel.is_short or not (kernel.num_sms or kernel.target):
        return None
    if not _is_small(worst, compiled, kernel.launches[0]):
        return _of_short_sums(worst) if len(dots) == 1 else None  # of attention, these are the columns of a head
    blocks = kernel.launches[0].blocks
    most = blocks * worst.m * worst.n / (_BLOCKS_OF_SM * max(kernel.num_sms, 1))  # without a GPU sizes are of a test
    if most < _LARGER**2:
        return None
    side = _LARGEST if most >= _LARGEST**2 else _LARGER
    return Defect(
        f"multiplies matrices in {blocks:,} tiles of {worst.m}x{worst.n}: each element is loaded once for "
        f"{min(worst.m, worst.n)} results",
        f"larger tiles, {side}x{side}, with tl.dot over at least 32: each element is loaded less often",
        _saved(kernel, compiled, worst, side),
        Confidence.HEURISTIC if kernel.target else Confidence.LIKELY,
        [worst.place],
        (Quantity("blocks", blocks), Quantity("rows of a tile", worst.m), Quantity("columns of a tile", worst.n)),
        is_of_launch=True,
    )


def _saved(kernel: HotKernel, compiled: CompiledKernel, dot: Dot, side: int) -> float:
    """By loads of each element, until products bound the kernel."""
    by_loads = 1 - 2 / side / (1 / dot.m + 1 / dot.n)
    products = multiplying_ns(kernel, compiled)
    return by_loads if products is None else max(min(by_loads, 1 - products / kernel.mean_ns), 0.0)


def _is_small(dot: Dot, compiled: CompiledKernel, launch: Configuration) -> bool:
    """Whether a tile is short along both sides, or along one of which there are several."""
    if min(dot.m, dot.n) > SMALL_TILE.value or max(dot.m, dot.n) <= SMALL_TILE.value:
        return max(dot.m, dot.n) <= SMALL_TILE.value
    order = compiled.order
    if order is None:
        return False
    inner = order.tiles or launch.grid[0]
    is_along_inner = (dot.n < dot.m) == (order.operand == 1)
    return (inner if is_along_inner else launch.blocks // max(inner, 1)) * min(dot.m, dot.n) >= _LARGER * _SEVERAL


def _of_short_sums(dot: Dot) -> Defect | None:
    is_short = dot.in_loop and dot.operand.endswith("f16") and dot.k <= _SHORT_SUM
    if not is_short or min(dot.m, dot.n) < _LARGER:
        return None
    return Defect(
        f"adds up products of {dot.k} columns and rows in each turn of a loop: one instruction of tensor cores",
        _CHANGE_OF_SUMS,
        _SAVED_OF_SUMS,
        Confidence.LIKELY,
        [dot.place],
        (Quantity("columns of a tile that are summed over", dot.k),),
        is_of_launch=True,
    )


RULE = kernel_rule(
    "small-tiles",
    _judge,
    "products of matrices in Triton kernels with tiles of at most 32 rows or columns, or sums over 16 at a time",
    _CHANGE,
    SMALL_TILE,
    SHORT_LAUNCH,
    needs=(OF_KERNELS, CODE, LAUNCHES),
)
