"""Atomic operations of many threads on one address."""

from __future__ import annotations

from functools import partial

from bragg.analyze.causes.hot_kernels import HotKernel
from bragg.analyze.causes.kernel_finding import Defect, kernel_findings
from bragg.analyze.causes.needs import CODE, GPU_TIME
from bragg.analyze.causes.thresholds import MANY_LANES, MUCH_GPU
from bragg.analyze.engine import Rule
from bragg.model import Confidence, Quantity
from bragg.model.kernels.compiled import Atomic, CompiledKernel

__all__ = ["RULE"]

# The second level of cache does one after the other.
_SAVED, _SAVED_SCALAR = 0.7, 0.3
_CHANGE = "reduce the tile first (tl.sum), over all turns of the loop, and let each program do one atomic operation"
_CHANGE_OF_TILES = "add up tiles in the loop, and do one atomic operation of the sum after it"


def _judge(kernel: HotKernel, compiled: CompiledKernel) -> Defect | None:
    contended = [each for each in compiled.atomics or () if _is_contended(each)]
    if not contended:
        return None
    worst = max(contended, key=lambda each: (_is_of_lanes(each), each.elements, each.in_loop))
    of_lanes = _is_of_lanes(worst)
    how = f"all {worst.elements:,} elements of a tile" if of_lanes else "each turn of a loop"
    where = "one address" if of_lanes or worst.elements == 1 else "the same addresses"
    return Defect(
        f"does atomic operations of {how} on {where}",
        _CHANGE if of_lanes or worst.elements == 1 else _CHANGE_OF_TILES,
        _SAVED if of_lanes else _SAVED_SCALAR,
        Confidence.LIKELY,
        [each.place for each in (worst, *contended)],
        (Quantity("elements", worst.elements), Quantity("atomic operations", len(contended))),
    )


def _is_contended(atomic: Atomic) -> bool:
    return _is_of_lanes(atomic) or atomic.is_repeated


def _is_of_lanes(atomic: Atomic) -> bool:
    return bool(atomic.is_one_address) and atomic.elements >= MANY_LANES.value


RULE = Rule(
    partial(kernel_findings, rule="atomics-on-one-address", judge=_judge),
    "atomic operations of many threads, or of each turn, on one address",
    (GPU_TIME, CODE),
    (MUCH_GPU, MANY_LANES),
    _CHANGE,
)
