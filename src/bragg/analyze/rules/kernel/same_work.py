"""Loops that compute the same in every program of a launch."""

from __future__ import annotations

import math
from collections.abc import Sequence

from bragg.analyze.causes.kernel_finding import counted_text
from bragg.analyze.rules.kernel_rule import CompiledKernel, Confidence, Defect, HotKernel, Quantity, kernel_rule
from bragg.model.kernels.compiled import Loop

# A loop over a whole tensor takes nearly all of a kernel that does little else; another kernel that does it once costs
# a launch. Not yet compared with recorded programs.
_SAVED_ALONE = 0.75
# Of n programs, the last takes n turns, the mean half as many.
_SAVED_OF_SUMS = 0.5
_CHANGE_OF_SUMS = (
    "store the sum of each tile, add up these few sums in a kernel between (tl.cumsum), and load the result"
)
_CHANGE = "compute it once, in a kernel before this one, and load the result; or split the loop between the programs"


def _judge(kernel: HotKernel, compiled: CompiledKernel) -> Defect | None:
    loops = compiled.loops or ()
    grid = max((launch.grid for launch in kernel.launches), key=math.prod, default=(1, 1, 1))
    repeats = [_repeats(each, grid) for each in loops]
    found, blocks = [loop for loop, times in zip(loops, repeats, strict=True) if times > 1], max(repeats, default=1)
    if not found:
        return _of_earlier(loops)
    share, is_measured = kernel.share_of_lines([each.place for each in found])
    saved = share if is_measured else _SAVED_ALONE if len(found) == len(loops) else share
    return Defect(
        f"runs the same loop with the same loads in each of {counted_text(blocks, 'block')}",
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


def _of_earlier(loops: Sequence[Loop]) -> Defect | None:
    """Sums over what earlier programs add up, too."""
    places = [each.place for each in loops if each.is_of_earlier]
    if not places:
        return None
    return Defect(
        "adds up in each program all tiles that programs before it have added up",
        _CHANGE_OF_SUMS,
        _SAVED_OF_SUMS if len(places) == len(loops) else None,
        Confidence.HEURISTIC,
        places,
        (Quantity("such loops", len(places)),),
    )


def _repeats(loop: Loop, grid: tuple[int, int, int]) -> int:
    """Blocks that do the same work in a loop."""
    if loop.axes is None:
        return 1
    return math.prod(size for axis, size in zip("xyz", grid, strict=True) if axis not in loop.axes)


RULE = kernel_rule(
    "same-work", _judge, "loops of Triton kernels that load and compute the same in every program", _CHANGE
)
