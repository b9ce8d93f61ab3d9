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


def _judge(kernel: HotKernel, compiled: CompiledKernel) -> Defect | None:
    contended = [each for each in compiled.atomics or () if _is_contended(each)]
    if not contended:
        return None
    worst = max(contended, key=lambda each: (each.elements, each.in_loop))
    how = f"all {worst.elements:,} elements of a tile" if worst.elements > 1 else "each turn of a loop"
    return Defect(
        f"does atomic operations of {how} on one address",
        _CHANGE,
        _SAVED if worst.elements > 1 else _SAVED_SCALAR,
        Confidence.LIKELY,
        [each.place for each in (worst, *contended)],
        (Quantity("elements", worst.elements), Quantity("atomic operations", len(contended))),
    )


def _is_contended(atomic: Atomic) -> bool:
    if not atomic.is_one_address:
        return False
    return atomic.elements >= MANY_LANES.value or (atomic.in_loop and atomic.is_per_program is False)


RULE = Rule(
    partial(kernel_findings, rule="atomics-on-one-address", judge=_judge),
    "atomic operations of many threads, or of each turn, on one address",
    (GPU_TIME, CODE),
    (MUCH_GPU, MANY_LANES),
    _CHANGE,
)
