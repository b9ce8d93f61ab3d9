"""Warps that wait for the other warps of their block."""

from __future__ import annotations

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

_BARRIER = "wait for other warps"
_SAVED = 0.5
_CHANGE = "fewer warps, or reductions and changes of layout outside of the loop"


def _judge(_: HotKernel, inside: InsideKernel) -> Defect | None:
    waits = [each for each in inside.stretches if each.does == _BARRIER]
    warps = [warp for warp in range(inside.warps) if inside.time_of_warp(warp)]
    share = share_of_warps(inside, waits, warps)
    if share < MUCH_WAITING.value:
        return None
    by_warp = [sum(each.cycles[warp] for each in waits if warp < len(each.cycles)) for warp in warps]
    skew = 1 - min(by_warp) / max(by_warp)
    uneven = (
        f"; warp {warps[by_warp.index(min(by_warp))]} waits least, the others for it"
        if skew > MUCH_WAITING.value
        else ""
    )
    return Defect(
        f"waits {percent_text(share)} of the time of its warps for other warps of their block{uneven}",
        _CHANGE,
        share * _SAVED,
        Confidence.HEURISTIC,
        places_of(waits),
        (Quantity("waiting for other warps", share, "share"), Quantity("skew of the warps", skew, "share")),
    )


RULE = Rule(
    partial(clock_findings, rule="waits-for-warps", judge=_judge),
    "kernels whose warps wait for each other",
    (GPU_TIME, CLOCKS),
    (MUCH_GPU, MUCH_WAITING),
    _CHANGE,
)
