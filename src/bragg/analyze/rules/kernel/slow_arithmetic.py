"""Divisions, remainders and costly functions of each element, where memory does not hide them."""

from __future__ import annotations

from functools import partial

from bragg.analyze.causes.hot_kernels import HotKernel
from bragg.analyze.causes.kernel_finding import Defect, kernel_findings
from bragg.analyze.causes.needs import CODE, GPU_TIME
from bragg.analyze.causes.thresholds import BUSY_ISSUING, ISSUED, MUCH_GPU, NEAR_ROOF, SLOW_LINES
from bragg.analyze.engine import Rule
from bragg.analyze.specs import find
from bragg.model import Confidence, Quantity
from bragg.model.kernels.compiled import CompiledKernel, SlowOperation

__all__ = ["RULE"]

# Of the time at these lines: a multiplication instead of a division.
_SAVED = 0.7
_SCHEDULERS = 4  # of a multiprocessor, since sm_70; each issues one instruction of a warp in a cycle
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
    saved = share * _SAVED if is_measured else _saved(kernel, compiled, share)
    if saved is None:
        return None
    counts = {each.place: each.count for each in compiled.instructions or ()}
    worst = max(slow, key=lambda each: (counts.get(each.place, 0), each.is_by_invariant))
    where = " in a loop" if worst.in_loop else ""
    same = " by the same value in each turn" if worst.is_by_invariant else ""
    return Defect(
        f"computes {_article(worst.name)} {worst.name}{same} for each element{where}",
        _change(worst),
        saved,
        Confidence.LIKELY,
        [worst.place, *places],
        (
            Quantity("slow operations", len(slow)),
            Quantity("share of its samples" if is_measured else "share of its instructions", share, "share"),
        ),
        is_measured,
    )


def _saved(kernel: HotKernel, compiled: CompiledKernel, share: float) -> float | None:
    """Share of its time that goes away with a share of its instructions; None: memory hides them, or it is not known.

    In a turn of a loop, or in a block without loops, instructions that take longer to issue than bytes to move are not
    hidden. What remains is memory.
    """
    accesses = compiled.accesses or ()
    moved = [each for each in accesses if each.in_loop]
    if not moved and any(each.in_loop for each in compiled.slow or ()):
        return share * _SAVED
    is_straight = not moved
    bytes_per_s = find(kernel.device).bytes_per_s
    issued_per_s = _SCHEDULERS * kernel.num_sms * float(kernel.device.get("clock_khz") or 0) * 1e3
    if not bytes_per_s or not issued_per_s or not compiled.instructions or not compiled.num_warps:
        return None
    moving_s = sum(each.size_bytes for each in moved or accesses) / bytes_per_s
    issuing_s = sum(each.count for each in compiled.instructions) * compiled.num_warps / issued_per_s
    if issuing_s < ISSUED.value * moving_s:
        return None
    if not is_straight:
        return min(share, 1 - moving_s / issuing_s) if issuing_s > moving_s else None
    blocks_s = kernel.mean_ns / 1e9 / max((launch.blocks for launch in kernel.launches), default=1)
    is_hidden = moving_s > NEAR_ROOF.value * blocks_s or issuing_s < BUSY_ISSUING.value * blocks_s
    return None if is_hidden else min(share, 1 - moving_s / blocks_s)


def _article(name: str) -> str:
    return "an" if name[0] in "aei" else "a"


def _change(operation: SlowOperation) -> str:
    if operation.name in ("division", "whole power"):
        return _BY_FLOAT if operation.name == "division" else _BY_ITSELF
    return _BY_INTEGER if operation.name in ("integer division", "remainder") else _FUNCTION


RULE = Rule(
    partial(kernel_findings, rule="slow-arithmetic", judge=_judge),
    "divisions, remainders and costly functions in Triton kernels that memory does not hide",
    (GPU_TIME, CODE),
    (MUCH_GPU, SLOW_LINES, ISSUED, BUSY_ISSUING, NEAR_ROOF),
    f"{_BY_FLOAT}; {_BY_INTEGER}",
)
