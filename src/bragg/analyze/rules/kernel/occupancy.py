"""Kernels of which too few warps fit on a multiprocessor to hide the time of their loads."""

from __future__ import annotations

from bragg.analyze.causes.issuing import block_times
from bragg.analyze.causes.needs import CODE, GPU_TIME, LAUNCHES
from bragg.analyze.causes.thresholds import LOW_OCCUPANCY, NEAR_ROOF
from bragg.analyze.rules.kernel_rule import CompiledKernel, Confidence, Defect, HotKernel, Quantity, kernel_rule

_SAVED = 0.3
# As long issuing instructions as moving bytes: few warps hide the loads of so much arithmetic.
_COMPUTES = 4.0
_CHANGES = {
    "registers": "a smaller tile, or more warps for it, so that a thread needs fewer registers",
    "shared memory": "a smaller tile, or fewer stages, so that a block needs less shared memory",
}


def _judge(kernel: HotKernel, compiled: CompiledKernel) -> Defect | None:
    share, limit = compiled.occupancy, compiled.occupancy_limit
    if share is None or share >= LOW_OCCUPANCY.value or limit not in _CHANGES or compiled.dots:
        return None  # products of tiles hide their loads by stages, not by warps
    blocks = max((launch.blocks for launch in kernel.launches), default=0)
    times = block_times(kernel, compiled)
    computes = times is not None and times.issuing_s > _COMPUTES * times.moving_s
    is_near_roof = kernel.roof_share is not None and kernel.roof_share >= NEAR_ROOF.value
    if computes or is_near_roof or blocks <= kernel.num_sms:
        return None
    taken = compiled.registers if limit == "registers" else compiled.dynamic_shared_bytes
    unit = "registers a thread" if limit == "registers" else "B of shared memory a block"
    return Defect(
        f"fills {share * 100:.3g} % of a multiprocessor's warps: {taken or 0:,} {unit} allow no more",
        _CHANGES[limit],
        _SAVED,
        Confidence.HEURISTIC,
        (),
        (Quantity("occupancy", share, "share"), Quantity(unit, taken or 0), Quantity("blocks", blocks)),
    )


RULE = kernel_rule(
    "low-occupancy",
    _judge,
    "Triton kernels without products of which few warps fit on a multiprocessor",
    "; ".join(_CHANGES.values()),
    LOW_OCCUPANCY,
    NEAR_ROOF,
    needs=(GPU_TIME, CODE, LAUNCHES),
)
