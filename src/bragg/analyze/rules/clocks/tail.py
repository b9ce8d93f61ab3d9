"""Launches at whose end much of the GPU is empty."""

from __future__ import annotations

from functools import partial

from bragg.analyze.causes.clocked import CLOCKS, EMPTY_TAIL, clock_findings
from bragg.analyze.causes.hot_kernels import HotKernel
from bragg.analyze.causes.kernel_finding import Defect
from bragg.analyze.causes.needs import GPU_TIME
from bragg.analyze.causes.thresholds import MUCH_GPU, SHORT_LAUNCH
from bragg.analyze.engine import Rule
from bragg.model import Confidence, Quantity
from bragg.model.finding import percent_text
from bragg.model.kernels.inside import InsideKernel

_CHANGE = "another tile, whose blocks fill whole waves, or a persistent kernel with one block for each place"


def _judge(_: HotKernel, inside: InsideKernel) -> Defect | None:
    tail = inside.placement.tail_share
    if inside.waves is None or inside.waves <= 1 or tail < EMPTY_TAIL.value or inside.span_ns < SHORT_LAUNCH.value:
        return None
    return Defect(
        f"leaves {percent_text(tail)} of the GPU empty after its last block has begun: "
        f"it has {inside.waves:,.1f} waves",
        _CHANGE,
        tail,
        Confidence.PROVEN,
        (),
        (
            Quantity("empty in the tail", tail, "share"),
            Quantity("waves", inside.waves),
            Quantity("blocks", inside.blocks),
            Quantity("slowest block", inside.block_ns[2], "ns"),
        ),
        saving_is_measured=True,
    )


RULE = Rule(
    partial(clock_findings, rule="tail-of-blocks", judge=_judge),
    "launches whose last blocks leave much of the GPU empty, as clocks saw it",
    (GPU_TIME, CLOCKS),
    (MUCH_GPU, EMPTY_TAIL, SHORT_LAUNCH),
    _CHANGE,
)
