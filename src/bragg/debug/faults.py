"""Faults that end a kernel."""

from __future__ import annotations

import sys
from functools import cache
from typing import Any

from bragg.errors import BraggError, UsageError


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
    """The kernel does what a GPU cannot compile or survive.

    Attributes:
        triton_name: The exception of `triton.compiler` that Triton raises; empty: it compiles the kernel.
        rule: Name of the checker that finds it.
    """

    triton_name = "CompilationError"
    rule = "kernel-fault"


class BlockAsCondition(KernelFault):
    """An `if` or a loop asks a block. Where elements are combined, each is asked by itself."""


class StaticAssertion(KernelFault):
    """`tl.static_assert` fails."""

    triton_name = "CompileTimeAssertionFailure"


class RuntimeFault(KernelFault):
    """What a kernel does that Triton compiles: a GPU would notice it, or not end."""

    triton_name = ""


@cache
def _of_both(kind: type[KernelFault], tritons: type[Exception]) -> Any:
    return type(kind.__name__, (kind, tritons), {"__module__": kind.__module__, "__doc__": kind.__doc__})


def as_tritons(fault: KernelFault, *, is_interpreted: bool = False) -> KernelFault:
    """The fault as what Triton raises too, so that programs which catch that catch the fault.

    As in Triton, the cause says what is wrong without the place.

    Args:
        fault: What is wrong with the kernel.
        is_interpreted: The program chose Triton's interpreter, whose errors are all of one class.
    """
    errors = sys.modules.get("triton.runtime.errors" if is_interpreted else "triton.compiler.errors")
    tritons = getattr(errors, "InterpreterError" if is_interpreted else fault.triton_name, None)
    if tritons is None or isinstance(fault, tritons):
        return fault
    kind = _of_both(type(fault), tritons)  # type: ignore[arg-type]
    made: KernelFault = kind.__new__(kind, fault.message)
    vars(made).update(vars(fault), src=None, node=None, error_message=fault.reason)
    made.__cause__ = ValueError(fault.reason)
    return made.with_traceback(fault.__traceback__)


class TooManyPrograms(RuntimeFault):
    """Programs wait for others that cannot start before they end."""

    rule = "residency"


class Unsupported(_Placed, UsageError):  # noqa: N818
    """The kernel is fine, but the engine does not know this construct."""
