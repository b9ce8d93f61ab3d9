"""Divisions, remainders and costly functions of each element in loops, and powers with whole exponents."""

from __future__ import annotations

from functools import partial

from bragg.analyze.causes.hot_kernels import HotKernel
from bragg.analyze.causes.kernel_finding import Defect, kernel_findings
from bragg.analyze.causes.needs import CODE, GPU_TIME
from bragg.analyze.causes.thresholds import MUCH_GPU, SLOW_LINES
from bragg.analyze.engine import Rule
from bragg.model import Confidence, Quantity
from bragg.model.kernels.compiled import CompiledKernel, SlowOperation

__all__ = ["RULE"]

# Of the time at these lines: a multiplication instead of a division. Without samples it is known only where no load of
# the loop hides the arithmetic: kernels on an H100 that wait for memory became no faster.
_SAVED = 0.7
_BY_FLOAT = "multiply by the reciprocal, computed before the loop, or divide the sum after it"
_BY_INTEGER = "carry the index on from turn to turn, tile along the period, or make the divisor a constexpr"
_BY_ITSELF = "multiply: x * x * x instead of pow(x, 3)"
_FUNCTION = "a cheaper function: multiplications for whole powers, tl.exp2 and tl.log2 for others"


def _judge(kernel: HotKernel, compiled: CompiledKernel) -> Defect | None:
    slow = compiled.slow or ()
    places = [each.place for each in slow]
    share, is_measured = kernel.share_of_lines(places)
    if not slow or share < SLOW_LINES.value:
        return None
    worst = max(slow, key=lambda each: (each.is_by_invariant, each.elements))
    where = " in a loop" if worst.in_loop else ""
    same = " by the same value in each turn" if worst.is_by_invariant else ""
    return Defect(
        f"computes {_article(worst.name)} {worst.name}{same} for each element{where}",
        _change(worst),
        share * _SAVED if is_measured or (worst.in_loop and not _loads_in_loops(compiled)) else None,
        Confidence.LIKELY,
        [worst.place, *places],
        (
            Quantity("slow operations", len(slow)),
            Quantity("share of its samples" if is_measured else "share of its instructions", share, "share"),
        ),
        is_measured,
    )


def _loads_in_loops(compiled: CompiledKernel) -> bool:
    return any(each.in_loop for each in compiled.accesses or ())


def _article(name: str) -> str:
    return "an" if name[0] in "aei" else "a"


def _change(operation: SlowOperation) -> str:
    if operation.name in ("division", "whole power"):
        return _BY_FLOAT if operation.name == "division" else _BY_ITSELF
    return _BY_INTEGER if operation.name in ("integer division", "remainder") else _FUNCTION


RULE = Rule(
    partial(kernel_findings, rule="slow-arithmetic", judge=_judge),
    "divisions, remainders and costly functions in loops of Triton kernels, and powers with whole exponents",
    (GPU_TIME, CODE),
    (MUCH_GPU, SLOW_LINES),
    f"{_BY_FLOAT}; {_BY_INTEGER}",
)
