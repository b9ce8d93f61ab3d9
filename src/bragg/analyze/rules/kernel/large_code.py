"""Kernels whose machine code does not fit into the cache of instructions."""

from __future__ import annotations

from bragg.analyze.causes.thresholds import LARGE_CODE
from bragg.analyze.rules.kernel_rule import CompiledKernel, Confidence, Defect, HotKernel, Quantity, kernel_rule

_SAVED = 0.3
_CHANGE = "tl.range instead of tl.static_range, or a smaller loop_unroll_factor: each turn runs the same instructions"


def _judge(kernel: HotKernel, compiled: CompiledKernel) -> Defect | None:
    size, counted = compiled.code_bytes or 0, compiled.instructions
    if size <= LARGE_CODE.value or not counted:
        return None
    lines = sorted(counted, key=lambda each: -each.count)
    largest, total = lines[0], sum(each.count for each in counted)
    return Defect(
        f"has {size / 1024:,.0f} kB of machine code, {largest.count / total * 100:.0f} % of it for one line: "
        "multiprocessors wait for instructions",
        _CHANGE,
        _SAVED,
        Confidence.HEURISTIC,
        [each.place for each in lines[:3]],
        (
            Quantity("machine code", size, "B"),
            Quantity("instructions of the line", largest.count),
        ),
    )


RULE = kernel_rule(
    "large-code",
    _judge,
    "Triton kernels with more machine code than the cache of instructions holds",
    _CHANGE,
    LARGE_CODE,
)
