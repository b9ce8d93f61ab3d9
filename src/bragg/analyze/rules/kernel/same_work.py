"""Loops and reductions that compute the same in every program of a launch."""

from __future__ import annotations

from functools import partial

from bragg.analyze.causes.hot_kernels import HotKernel
from bragg.analyze.causes.kernel_finding import Defect, counted_text, kernel_findings
from bragg.analyze.causes.needs import CODE, GPU_TIME
from bragg.analyze.causes.thresholds import MUCH_GPU
from bragg.analyze.engine import Rule
from bragg.model import Confidence, Quantity
from bragg.model.kernels.compiled import CompiledKernel

__all__ = ["RULE"]

# A loop over a whole tensor takes nearly all of a kernel that does little else; another kernel that does it once costs
# a launch. Not yet compared with recorded programs.
_SAVED_ALONE = 0.75
# Of the elements that a block loads for itself: fewer are hidden by these loads.
_MUCH = 2
_CHANGE = "compute it once, in a kernel before this one, and load the result; or split the loop between the programs"


def _judge(kernel: HotKernel, compiled: CompiledKernel) -> Defect | None:
    loops = compiled.loops or ()
    found = [each for each in loops if each.is_per_program is False]
    blocks = max((launch.blocks for launch in kernel.launches), default=0)
    if blocks < 2:
        return None
    if not found:
        return _of_reductions(kernel, compiled, blocks)
    share, is_measured = kernel.share_of_lines([each.place for each in found])
    saved = share if is_measured else _SAVED_ALONE if len(found) == len(loops) else share
    return Defect(
        f"runs the same loop with the same loads in each of its {counted_text(blocks, 'block')}",
        _CHANGE,
        saved * (1 - 1 / blocks),
        Confidence.PROVEN,
        [each.place for each in found],
        (
            Quantity("blocks that repeat it", blocks),
            Quantity("loads of tiles in it", sum(each.n_loads for each in found)),
            *([Quantity("share of its samples", share, "share")] if is_measured else []),
        ),
        is_measured,
    )


def _of_reductions(kernel: HotKernel, compiled: CompiledKernel, blocks: int) -> Defect | None:
    reductions = compiled.shared_reductions or ()
    shared = sum({each.place: each.elements for each in reductions}.values())
    own = sum(each.elements for each in compiled.accesses or ()) - shared
    if not reductions or compiled.loops or shared < _MUCH * own:
        return None
    share, is_measured = kernel.share_of_lines([each.place for each in reductions])
    return Defect(
        f"reduces the same {shared:,} elements in each of its {counted_text(blocks, 'block')}",
        _CHANGE,
        (share if is_measured else shared / (shared + own)) * (1 - 1 / blocks),
        Confidence.LIKELY,
        [each.place for each in reductions],
        (Quantity("blocks that repeat it", blocks), Quantity("elements", shared)),
        is_measured,
    )


RULE = Rule(
    partial(kernel_findings, rule="same-work", judge=_judge),
    "loops and reductions of Triton kernels that load and compute the same in every program",
    (GPU_TIME, CODE),
    (MUCH_GPU,),
    _CHANGE,
)
