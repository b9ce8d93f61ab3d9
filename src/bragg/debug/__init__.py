"""Executes Triton kernels without a GPU and finds what is wrong with them.

with bragg.debug.interpret():                 # every launch
    kernel[grid](x, y, n, BLOCK=1024)

bragg.debug.interpret(kernel)[grid](x, y, n, BLOCK=1024)

with bragg.debug.check() as report:           # the same, watched
    kernel[grid](x, y, n, BLOCK=1024)
for finding in report: ...
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bragg.debug.report import Report

__all__ = ["check", "interpret"]


def interpret(kernel: Any = None) -> Any:
    """Execute launches in this process instead of on a GPU.

    An access outside of its tensor raises `bragg.debug.faults.KernelFault`; nothing else is checked.

    Args:
        kernel: The kernel to execute; None: every kernel, in a `with` block.

    Returns:
        The kernel, to be launched as usual; or a context manager.
    """
    from bragg.debug.switch import InterpretedKernel, redirected, run_plainly

    return redirected(run_plainly) if kernel is None else InterpretedKernel(kernel)


def check(
    *, only: Sequence[str] = (), add: Sequence[str] = (), without: Sequence[str] = (), target: str = ""
) -> AbstractContextManager[Report]:
    """Execute and check the launches in a `with` block.

    Args:
        only: Names of the checkers to use; empty: those that are on by default.
        add: Checkers to use too.
        without: Checkers to leave out.
        target: The GPU that kernels are for: `sm_90`, `sm_100`, `gfx942` and the like, or `any`; empty: that of the
            machine, `sm_90` where there is none.

    Returns:
        A context manager that gives the findings, complete when the block ends.

    Raises:
        UsageError: A name is not that of a checker, or of a target.
    """
    from bragg.debug.session import CheckedSession, checking, chosen_checkers

    return checking(CheckedSession(chosen_checkers(only, add, without), target=target))
