"""Metrics that are counted by instruction, in kernels that the vendor's library patches for it."""

from __future__ import annotations

COUNTED_PREFIX = "smsp__sass_"
"""Of the vendor's names of these metrics."""

COUNTED_LAUNCHES = "instruction_counted_launches"
"""Metric of kernels: how many launches the counts add up to."""

EXECUTED, THREADS = "smsp__sass_inst_executed", "smsp__sass_thread_inst_executed_pred_on"
"""By warps; and by threads whose predicate let them."""

FLOPS = "flops"
"""What follows from both and from the instruction: floating-point operations."""


def is_counted_by_instruction(metric: str) -> bool:
    """Whether a metric has values of instructions."""
    return metric.startswith(COUNTED_PREFIX)
