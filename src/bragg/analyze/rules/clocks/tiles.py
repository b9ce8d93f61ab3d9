"""Matrix products whose warps wait for the tiles that they multiply."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from bragg.analyze.causes.clocked import CLOCKS, MUCH_WAITING, clock_findings, places_of, share_of_warps
from bragg.analyze.causes.hot_kernels import HotKernel
from bragg.analyze.causes.kernel_finding import Defect
from bragg.analyze.causes.needs import GPU_TIME
from bragg.analyze.causes.thresholds import MUCH_GPU
from bragg.analyze.engine import Rule
from bragg.model import Confidence, Quantity
from bragg.model.finding import percent_text
from bragg.model.kernels.inside import InsideKernel

_COPY_WAITS = ("wait for a barrier in memory", "wait for copies to shared memory")
_PRODUCTS = ("begin matrix products", "wait for matrix products")
# More stages hide a part of the wait; the rest is the bandwidth of the memory.
_SAVED = 0.5
# With so many stages in flight, tiles come too slowly, not too late.
_MANY_STAGES = 4
_CHANGE = "more stages (num_stages), if the shared memory has room for them"
_CHANGE_OF_PRODUCER = "larger tiles, which are read less often, or copies by tensor descriptors"


def _judge(kernel: HotKernel, inside: InsideKernel) -> Defect | None:
    loops = [each for each in inside.stretches if each.in_loop]
    # Of specialized warps, those that copy wait for room in the shared memory, which is as it should be.
    warps = {warp for each in loops if each.does in _PRODUCTS for warp, cycles in enumerate(each.cycles) if cycles}
    waits = [each for each in loops if each.does in _COPY_WAITS]
    share = share_of_warps(inside, waits, warps)
    if not warps or share < MUCH_WAITING.value:
        return None
    stages = kernel.compiled.num_stages if kernel.compiled else None
    is_deep = stages is not None and stages >= _MANY_STAGES
    depth = f" with {stages} stages" if stages else ""
    return Defect(
        f"waits {percent_text(share)} of the time of its warps for the tiles that it multiplies{depth}",
        _CHANGE_OF_PRODUCER if is_deep else _CHANGE,
        share * _SAVED,
        Confidence.HEURISTIC,
        places_of(waits),
        (
            Quantity("waiting for tiles", share, "share"),
            Quantity("warps of a block that multiply", len(warps)),
            *([Quantity("stages", stages)] if stages else []),
            *_of_copies(inside),
        ),
    )


def _of_copies(inside: InsideKernel) -> Iterator[Quantity]:
    """How long copies take that are waited for, and how many are in flight."""
    for copies in inside.copies:
        yield Quantity("copies begun before the first wait", copies.ahead)
        if copies.latency:
            yield Quantity("cycles from the beginning of a copy to the end of its wait", max(copies.latency))


RULE = Rule(
    partial(clock_findings, rule="waits-for-tiles", judge=_judge),
    "matrix products whose warps wait for their tiles: a pipeline that is too shallow, or copies that are too slow",
    (GPU_TIME, CLOCKS),
    (MUCH_GPU, MUCH_WAITING),
    _CHANGE,
)
