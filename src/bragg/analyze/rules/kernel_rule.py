"""What rules that judge the code of each kernel are written with."""

from __future__ import annotations

from functools import partial

from bragg.analyze.causes.hot_kernels import HotKernel
from bragg.analyze.causes.kernel_finding import Defect, Judge, kernel_findings
from bragg.analyze.causes.needs import CODE, OF_KERNELS, Need
from bragg.analyze.causes.thresholds import MUCH_GPU, Threshold
from bragg.analyze.engine import Rule
from bragg.model import Confidence, Quantity
from bragg.model.kernels.compiled import CompiledKernel

__all__ = ["CompiledKernel", "Confidence", "Defect", "HotKernel", "Quantity", "kernel_rule"]


def kernel_rule(
    name: str,
    judge: Judge,
    finds: str,
    change: str,
    *thresholds: Threshold,
    needs: tuple[Need, ...] = (OF_KERNELS, CODE),
) -> Rule:
    """A rule about each kernel whose code is known and whose time matters.

    Args:
        name: Of the rule.
        judge: What is wrong with a kernel.
        finds: What the rule looks for, for the docs.
        change: What to do about it, for the docs.
        thresholds: The numbers that it compares with.
        needs: What a profile must have.
    """
    return Rule(partial(kernel_findings, rule=name, judge=judge), finds, needs, (MUCH_GPU, *thresholds), change)
