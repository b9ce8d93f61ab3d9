"""Loops that load tiles and multiply them, one after the other."""

from __future__ import annotations

from bragg.analyze.causes.kernel_finding import names_text
from bragg.analyze.causes.thresholds import NARROW_ACCESS
from bragg.analyze.rules.kernel_rule import CompiledKernel, Confidence, Defect, HotKernel, Quantity, kernel_rule
from bragg.analyze.rules.memory.narrow_access import culprits
from bragg.model.kernels.compiled import TensorCores

# Loads that are also narrow cost more than their latency. Beside large tiles no other block computes meanwhile: on an
# H100, three stages saved a product in tiles of 128x256 69 %, products in tiles of 64x64 14 and 15 %.
_SAVED, _SAVED_NARROW, _SAVED_LARGE, _LARGE_TILE = 0.2, 0.5, 0.5, 128 * 128
_ALIGN = "pass multiples of 16 as strides (pad the tensor, align the slice), or promise it: tl.multiple_of"
_STAGES = "num_stages=3"
_OTHER = "write the loop as `for` over a range, without early exit, and let loads depend on its counter alone"


def _judge(kernel: HotKernel, compiled: CompiledKernel) -> Defect | None:
    loops = [each for each in compiled.loops or () if each.n_dots and each.is_pipelined is False]
    if not loops or compiled.tensor_cores in (None, TensorCores.NONE):
        return None
    loads = [each for each in compiled.accesses or () if each.in_loop and not each.is_store]
    narrow = [each for each in loads if each.compiled_bytes and each.compiled_bytes < NARROW_ACCESS.value]
    names = [name for each in narrow for name in culprits(each)]
    is_large = any(each.in_loop and each.m * each.n >= _LARGE_TILE for each in compiled.dots or ())
    stages = compiled.num_stages
    if stages == 1:
        reason, change = "with num_stages=1", _STAGES
    elif names:
        reason, change = f"because nothing says that 16 divides {names_text(names)}", _ALIGN
    else:
        reason, change = f"although num_stages={stages}" if stages else "", _OTHER
    return Defect(
        f"loads tiles and multiplies them in turns, not at the same time, {reason}".rstrip(", "),
        change,
        _SAVED_NARROW if names else _SAVED_LARGE if is_large else _SAVED,
        Confidence.PROVEN,
        [*(loop.place for loop in loops), *(load.place for load in narrow)],
        (
            *([Quantity("stages asked for", stages)] if stages else []),
            Quantity("stages", 1),
            Quantity("loads in the loop", loops[0].n_loads),
        ),
        is_of_launch=stages == 1,
    )


RULE = kernel_rule(
    "loop-not-pipelined",
    _judge,
    "loops of Triton kernels that load and multiply tiles in turns",
    f"{_STAGES}; {_ALIGN}",
    NARROW_ACCESS,
)
