"""Kernels that need more registers than there are."""

from __future__ import annotations

from bragg.analyze.causes.thresholds import SPILLED
from bragg.analyze.rules.kernel_rule import CompiledKernel, Confidence, Defect, HotKernel, Quantity, kernel_rule
from bragg.model import Place
from bragg.model.kernels.compiled import Counted, Dot, TensorCores

# An access to local memory takes longer than the arithmetic around it: five programs took 62 to 86 % less without, on
# an H100 or H200, where 12 % of the instructions and more were such accesses.
_COST, _MOST = 4.0, 0.75
_CHANGE = "use more warps or a smaller tile"


def _judge(kernel: HotKernel, compiled: CompiledKernel) -> Defect | None:
    spills = [each for each in compiled.spills or () if each.place not in (compiled.prints or ())]  # of what is printed
    spilled = sum(each.count for each in spills)
    total = sum(each.count for each in compiled.instructions or ())
    if not spilled or not compiled.stack_bytes or spilled < SPILLED.value * total:
        return None
    # From sm_100 on, sums of products are in a memory of their own.
    dots = compiled.dots if compiled.tensor_cores is not TensorCores.TCGEN05 else ()
    largest = max(dots or (), key=lambda dot: dot.m * dot.n, default=None)
    line_of_sum = largest and (largest.place.file, largest.place.line)
    in_loops = _lines_in_loops(compiled)

    def order(counted: Counted) -> tuple[bool, bool, int]:
        line = (counted.place.file, counted.place.line)
        return line != line_of_sum, line not in in_loops, -counted.count

    asked = [f"{compiled.num_warps} warps"] if compiled.num_warps else []
    asked += [f"maxnreg={compiled.max_registers}"] if compiled.max_registers else []
    of_sum = _registers_of_sum(largest, compiled.threads) if largest else 0
    return Defect(
        f"spills registers{' with ' if asked else ''}{' and '.join(asked)}: "
        f"{spilled:,} instructions move them to local memory and back",
        _change(compiled.max_registers, of_sum),
        min(spilled / total * _COST, _MOST),
        Confidence.PROVEN,
        [each.place for each in sorted(spills, key=order)],
        (
            Quantity("instructions that spill", spilled),
            Quantity("share of the instructions", spilled / total, "share"),
            Quantity("stack of a thread", compiled.stack_bytes, "B"),
            *([Quantity("registers of a thread", compiled.registers)] if compiled.registers else []),
            *([Quantity("registers that the sum of the product takes", of_sum)] if of_sum else []),
        ),
        is_of_launch=True,
    )


def _change(max_registers: int | None, of_sum: int) -> str:
    if not max_registers:
        return _CHANGE
    why = f": the sum of tl.dot alone takes {of_sum} registers of a thread" if of_sum >= max_registers else ""
    return f"leave out maxnreg={max_registers}{why}"


def _registers_of_sum(dot: Dot, threads: int) -> int:
    """That a thread holds its part of a sum of 32-bit elements in; 0: not known."""
    return dot.m * dot.n // threads if threads else 0


def _lines_in_loops(compiled: CompiledKernel) -> set[tuple[str, int]]:
    """Lines that surely run in a loop."""
    accesses = [each.place for each in compiled.accesses or () if each.in_loop]
    dots: list[Place] = [each.place for each in compiled.dots or () if each.in_loop]
    return {(place.file, place.line) for place in (*accesses, *dots)}


RULE = kernel_rule("register-spills", _judge, "kernels that spill registers", _CHANGE, SPILLED)
