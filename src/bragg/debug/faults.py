"""What can be wrong with a kernel so that it cannot go on."""

from __future__ import annotations

from bragg.errors import BraggError, UsageError

__all__ = ["KernelFault", "Unsupported"]


class KernelFault(BraggError):  # noqa: N818
    """The kernel does what a GPU cannot compile or survive.

    Attributes:
        line: Line of the kernel's file; 0 when unknown.
    """

    def __init__(self, message: str, *, hint: str = "", line: int = 0) -> None:
        super().__init__(message, hint=hint)
        self.line = line


class Unsupported(UsageError):  # noqa: N818
    """The kernel is fine, but the engine does not know this construct."""
