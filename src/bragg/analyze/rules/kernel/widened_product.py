"""Products of tiles of 16 and 8 bits that are made 32 bits wide before."""

from __future__ import annotations

from bragg.analyze.rules.kernel_rule import CompiledKernel, Confidence, Defect, HotKernel, Quantity, kernel_rule
from bragg.model.kernels.compiled import TensorCores

# Tensor cores multiply 16-bit tiles twice as fast as TF32, from which they hold half as much.
_SAVED = 0.5
_NAMES = {"f16": "float16", "bf16": "bfloat16", "i8": "int8"}
_CHANGE = (
    "give tl.dot the tiles as they are loaded, one of 8 bits converted to the type of the other: it adds up in float32 "
    "all the same, and loses nothing; scale what it adds up by factors of rows or columns"
)


def _judge(kernel: HotKernel, compiled: CompiledKernel) -> Defect | None:
    found = [each for each in compiled.dots or () if each.widened_from]
    # Without tensor cores, the precision is the cause.
    if not found or compiled.tensor_cores in (None, TensorCores.NONE):
        return None
    worst = max(found, key=lambda each: (each.in_loop, each.m * each.n * each.k))
    return Defect(
        f"makes tiles of {_NAMES.get(worst.widened_from, 'float8')} 32 bits wide before it multiplies them "
        f"({worst.m}x{worst.k} by {worst.k}x{worst.n})",
        _CHANGE,
        _SAVED,
        Confidence.LIKELY,
        [each.place for each in (worst, *found)],
        (Quantity("such products of tiles", len(found)),),
    )


RULE = kernel_rule(
    "widened-product",
    _judge,
    "products of tiles of 16 and 8 bits in Triton kernels that are computed in 32 bits",
    _CHANGE,
)
