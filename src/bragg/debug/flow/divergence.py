"""What rewritten kernels call: programs part, run apart on compacted rows, and meet again."""

from __future__ import annotations

from typing import Any

from bragg.debug.flow.closures import closed
from bragg.debug.flow.forks import Branch, Frame, assigned, chosen, is_anyone_left
from bragg.debug.flow.logic import combined, constant_once, decides, minded, negated, refused
from bragg.debug.flow.loops import Loop, While
from bragg.debug.statements import asserted
from bragg.debug.stepping.lines import STOPS
from bragg.debug.values import UNSET

__all__ = [
    "UNSET",
    "Branch",
    "Frame",
    "Loop",
    "While",
    "asserted",
    "assigned",
    "chosen",
    "closed",
    "combined",
    "constant_once",
    "decides",
    "is_anyone_left",
    "listed",
    "minded",
    "negated",
    "refused",
    "stopped",
]


def stopped() -> None:
    """A line that a debugger stops at."""
    if STOPS.stop is not None:
        STOPS.stop()


def listed(values: list[Any]) -> tuple[Any, ...]:
    """What a list is to Triton: a tuple."""
    return tuple(values)
