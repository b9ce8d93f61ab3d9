"""Launches in which some multiprocessors work longer than others."""

from __future__ import annotations

from functools import partial

from bragg.analyze.causes.clocked import CLOCKS, UNEVEN, clock_findings
from bragg.analyze.causes.hot_kernels import HotKernel
from bragg.analyze.causes.kernel_finding import Defect
from bragg.analyze.causes.needs import GPU_TIME
from bragg.analyze.causes.thresholds import MUCH_GPU, SHORT_LAUNCH
from bragg.analyze.engine import Rule
from bragg.model import Confidence, Quantity
from bragg.model.kernels.inside import InsideKernel

_CHANGE = "begin the longest blocks first, or let blocks take their next piece of work from a counter"


def _judge(_: HotKernel, inside: InsideKernel) -> Defect | None:
    uneven, (fastest, median, slowest) = inside.placement.imbalance, inside.block_ns
    if inside.waves is None or uneven < UNEVEN.value or inside.span_ns < SHORT_LAUNCH.value:
        return None
    return Defect(
        f"keeps the busiest multiprocessor {uneven * 100:.0f} % longer than the mean: a block takes "
        f"{fastest / 1e3:,.1f} to {slowest / 1e3:,.1f} us",
        _CHANGE,
        uneven / (1 + uneven),
        Confidence.LIKELY,
        (),
        (
            Quantity("busiest multiprocessor over the mean", uneven, "share"),
            Quantity("multiprocessors", inside.placement.multiprocessors),
            Quantity("median block", median, "ns"),
            Quantity("slowest block", slowest, "ns"),
        ),
    )


RULE = Rule(
    partial(clock_findings, rule="uneven-multiprocessors", judge=_judge),
    "launches in which some multiprocessors work longer than others",
    (GPU_TIME, CLOCKS),
    (MUCH_GPU, UNEVEN, SHORT_LAUNCH),
    _CHANGE,
)
