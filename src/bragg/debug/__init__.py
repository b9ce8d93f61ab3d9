"""Executes Triton kernels without a GPU and finds what is wrong with them.

with bragg.debug.interpret():           # every launch
    kernel[grid](x, y, n, BLOCK=1024)

bragg.debug.interpret(kernel)[grid](x, y, n, BLOCK=1024)
"""

from __future__ import annotations

from typing import Any

__all__ = ["interpret"]


def interpret(kernel: Any = None) -> Any:
    """Execute launches in this process instead of on a GPU.

    Args:
        kernel: The kernel to execute; None: every kernel, in a `with` block.

    Returns:
        The kernel, to be launched as ever; or a context manager.
    """
    from bragg.debug.switch import InterpretedKernel, plain_runner, redirected

    return redirected(plain_runner()) if kernel is None else InterpretedKernel(kernel, plain_runner())
