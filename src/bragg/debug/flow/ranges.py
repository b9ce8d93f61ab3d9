"""The ranges that a kernel may loop over."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from bragg.debug.faults import KernelFault
from bragg.debug.state import machine
from bragg.debug.values import Tensor, scalar


class KernelRange:
    """`range` and `tl.range`: limits may be known only when the kernel runs.

    Args:
        first: The end; the start if there is a second number.
        end: The end.
        step: 1 unless given.
        _options: How the compiler should pipeline and unroll; no matter here.
    """

    def __init__(self, first: Any, end: Any = None, step: Any = None, **_options: Any) -> None:
        self.start = 0 if end is None else first
        self.end = first if end is None else end
        self.step = 1 if step is None else step

    def __iter__(self) -> Iterator[Tensor]:
        """The numbers, for one program whose code is as Python made it; rewritten loops do not iterate."""
        if not machine().is_plain:
            raise KernelFault("a range is used where only a loop can use it", hint="Loop over it: for i in range(…)")
        limits = (self.start, self.end, self.step)
        numbers = range(*(int(one.data.reshape(-1)[0]) if isinstance(one, Tensor) else one for one in limits))
        return (scalar(number) for number in numbers)


@dataclass
class StaticRange:
    """`tl.static_range`: unrolled; its numbers are constants."""

    first: Any
    end: Any = None
    step: Any = None

    def __iter__(self) -> Iterator[int]:
        limits = (0, self.first, self.step or 1) if self.end is None else (self.first, self.end, self.step or 1)
        if any(isinstance(limit, Tensor) for limit in limits):
            raise KernelFault("the limits of tl.static_range must be constants", hint="Use range")
        return iter(range(*limits))
