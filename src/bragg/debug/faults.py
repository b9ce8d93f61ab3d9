"""What can be wrong with a kernel so that it cannot go on."""

from __future__ import annotations

from bragg.errors import BraggError, UsageError

__all__ = ["KernelFault", "Unsupported"]


class _Placed(BraggError):  # noqa: N818
    """Something at a line of a kernel.

    Attributes:
        reason: What is wrong, without the place.
        kernel: Name of the kernel; empty until the place is known, as the others are.
        file: Of the line.
        line: That was executed; 0 when unknown.
    """

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.reason = message
        self.kernel, self.file, self.line = "", "", 0

    def place(self, kernel: str, file: str, line: int) -> None:
        """Say where it happened."""
        self.kernel, self.file, self.line = kernel, file, line
        self.message = f"{file}:{line}: {self.reason}"
        self.args = (self.message,)


class KernelFault(_Placed):
    """The kernel does what a GPU cannot compile or survive."""


class Unsupported(_Placed, UsageError):  # noqa: N818
    """The kernel is fine, but the engine does not know this construct."""
