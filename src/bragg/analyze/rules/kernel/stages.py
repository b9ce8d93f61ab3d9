"""Pipelines so deep that a multiprocessor holds one block, which nothing replaces while it begins and ends."""

from __future__ import annotations

from bragg.analyze.causes.needs import CODE, LAUNCHES, OF_KERNELS
from bragg.analyze.causes.thresholds import NEAR_ROOF
from bragg.analyze.kernel_facts import Configuration
from bragg.analyze.occupancy import resident_blocks
from bragg.analyze.rules.kernel_rule import CompiledKernel, Confidence, Defect, HotKernel, Quantity, kernel_rule

_SAVED = 0.1
# Two blocks of more warps have too few registers left for their tiles.
_GROUP_WARPS = 4
_LEAST_STAGES = 2
_CHANGE = "fewer num_stages, so that two blocks fit on a multiprocessor: one computes while the other begins or ends"


def _judge(kernel: HotKernel, compiled: CompiledKernel) -> Defect | None:
    is_near_roof = kernel.roof_share is not None and kernel.roof_share >= NEAR_ROOF.value
    loops = [each for each in compiled.loops or () if each.is_pipelined and each.n_dots and each.buffers]
    if not loops or not kernel.launches or is_near_roof or (compiled.num_warps or _GROUP_WARPS + 1) > _GROUP_WARPS:
        return None
    launch, deepest = kernel.launches[0], max(loops, key=lambda each: each.buffers or 0)
    stages = deepest.buffers or 0
    enough = _stages_of_two_blocks(kernel, launch, stages)
    if launch.blocks <= kernel.num_sms or not enough:
        return None
    return Defect(
        f"has one block of {compiled.num_warps} warps on a multiprocessor: {stages} stages take "
        f"{launch.shared_bytes / 1024:.0f} kB of shared memory, {enough} leave room for two",
        _CHANGE,
        _SAVED,
        Confidence.HEURISTIC,
        [deepest.place],
        (Quantity("stages", stages), Quantity("shared memory of a block", launch.shared_bytes, "B")),
        is_of_launch=True,
    )


def _stages_of_two_blocks(kernel: HotKernel, launch: Configuration, stages: int) -> int:
    """The most stages with which two blocks fit where one does now; 0: there are none."""
    x, y, z = launch.block
    arch, of_stage = str(kernel.device.get("arch", "")), launch.shared_bytes / max(stages, 1)

    def resident(n_stages: int) -> int:
        return resident_blocks(arch, x * y * z, launch.registers, int(of_stage * n_stages))

    if resident(stages) != 1:
        return 0
    return next((each for each in range(stages - 1, _LEAST_STAGES - 1, -1) if resident(each) > 1), 0)


RULE = kernel_rule(
    "too-many-stages",
    _judge,
    "pipelines of Triton kernels whose shared memory leaves room for one block of few warps",
    _CHANGE,
    NEAR_ROOF,
    needs=(OF_KERNELS, CODE, LAUNCHES),
)
