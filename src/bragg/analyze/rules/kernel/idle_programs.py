"""Grids with more programs than have work."""

from __future__ import annotations

from bragg.analyze.causes.needs import CODE, GPU_TIME, LAUNCHES
from bragg.analyze.causes.thresholds import SHORT_LAUNCH
from bragg.analyze.rules.kernel_rule import CompiledKernel, Confidence, Defect, HotKernel, Quantity, kernel_rule

# Of a block that has nothing to do, on its multiprocessor; recordings of an H100.
_START_NS = 80
_LEAST_SAVED = 0.05
_CHANGE = "a grid of as many programs as there are tiles: triton.cdiv(n, BLOCK)"


def _judge(kernel: HotKernel, compiled: CompiledKernel) -> Defect | None:
    stores = [each for each in compiled.accesses or () if each.is_store]
    # Sizes are those of the first launch: of other grids they may be others.
    if not stores or len(kernel.launches) != 1 or not kernel.num_sms or kernel.is_short:
        return None
    launch, needed = kernel.launches[0], dict(stores[0].programs)
    if compiled.atomics or any(dict(each.programs) != needed for each in stores):
        return None
    working = launch.blocks
    for axis, count in needed.items():
        along = launch.grid["xyz".index(axis)]
        working = working // along * min(count, along)
    saved = (launch.blocks - working) * _START_NS / kernel.num_sms / kernel.mean_ns
    if saved < _LEAST_SAVED:
        return None
    return Defect(
        f"is launched with {launch.blocks:,} blocks, of which {working:,} have work",
        _CHANGE,
        min(saved, 1 - working / launch.blocks),
        Confidence.LIKELY,
        (),
        (Quantity("blocks", launch.blocks), Quantity("blocks that have work", working)),
    )


RULE = kernel_rule(
    "idle-programs",
    _judge,
    "grids of Triton kernels with more programs than their tensors have tiles",
    _CHANGE,
    SHORT_LAUNCH,
    needs=(GPU_TIME, CODE, LAUNCHES),
)
