"""Divisions, remainders and costly functions of each element, where memory does not hide them."""

from __future__ import annotations

from bragg.analyze.causes.issuing import block_times
from bragg.analyze.causes.thresholds import BUSY_ISSUING, ISSUED, NEAR_ROOF, SLOW_LINES
from bragg.analyze.rules.kernel_rule import CompiledKernel, Confidence, Defect, HotKernel, Quantity, kernel_rule
from bragg.model.kernels.compiled import SlowOperation

# Of the time at these lines: a multiplication instead of a division.
_SAVED = 0.7
_BY_FLOAT = "multiply by the reciprocal, computed before the loop, or divide the sum after it"
_BY_INTEGER = "carry the index on from turn to turn, tile along the period, or make the divisor a constexpr"
_BY_ITSELF = "multiply: x * x * x instead of pow(x, 3)"
_FUNCTION = "a cheaper function: multiplications for whole powers, tl.exp2 and tl.log2 for others"


def _judge(kernel: HotKernel, compiled: CompiledKernel) -> Defect | None:
    slow = compiled.slow or ()
    places = [each.place for each in slow]
    share, is_measured = kernel.share_of_lines(places)
    # Loads in a loop may hide it, which the rates of a GPU tell.
    may_hide = kernel.target and any(each.in_loop for each in compiled.accesses or ())
    if not slow or share < SLOW_LINES.value or may_hide:
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

    Instructions that take longer to issue than bytes to move are not hidden; what remains is memory.
    """
    times = block_times(kernel, compiled)
    if any(each.in_loop for each in compiled.slow or ()) and not (times and times.is_of_turn):
        return share * _SAVED
    if times is None or times.issuing_s < ISSUED.value * times.moving_s:
        return None
    if times.is_of_turn:
        saved = min(share, 1 - times.moving_s / times.issuing_s)
        return saved if saved > 0 else None
    block_s = kernel.mean_ns / 1e9 / max((launch.blocks for launch in kernel.launches), default=1)
    # Memory explains its time, of what caches hold or of all that it accesses, unless that cannot be moved in the time.
    is_moving = any(NEAR_ROOF.value * block_s < each <= block_s for each in (times.moving_s, times.most_moving_s))
    is_hidden = is_moving or times.moving_s > block_s or times.issuing_s < BUSY_ISSUING.value * block_s
    return None if is_hidden else min(share, 1 - times.moving_s / block_s)


def _article(name: str) -> str:
    return "an" if name[0] in "aei" else "a"


def _change(operation: SlowOperation) -> str:
    if operation.name in ("division", "whole power"):
        return _BY_FLOAT if operation.name == "division" else _BY_ITSELF
    return _BY_INTEGER if operation.name in ("integer division", "remainder") else _FUNCTION


RULE = kernel_rule(
    "slow-arithmetic",
    _judge,
    "divisions, remainders and costly functions in Triton kernels that memory does not hide",
    f"{_BY_FLOAT}; {_BY_INTEGER}",
    SLOW_LINES,
    ISSUED,
    BUSY_ISSUING,
    NEAR_ROOF,
)
