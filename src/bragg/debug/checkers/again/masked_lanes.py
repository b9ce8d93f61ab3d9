"""Lanes that a mask leaves out, and whose value a reduction counts: 0 before a maximum, -inf before a sum.

A launch that has such lanes, of a kernel with reductions, is executed once more with them left out of these. They are
only told of where its results differ: what a kernel leaves out later, or what cancels out, does no harm.
"""

from __future__ import annotations

import ast
from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from bragg.code.python_nodes import name_of
from bragg.debug.checkers.again.replay import Difference, Replay
from bragg.debug.checkers.checker import Checker, LaunchFindings
from bragg.debug.expressions import access_text, accesses_at
from bragg.debug.faults import KernelFault, Unsupported
from bragg.debug.flow.called import texts_of
from bragg.debug.flow.place import kernel_line
from bragg.debug.flow.text import Text
from bragg.debug.host.launch import Launch
from bragg.debug.memory.access import Access
from bragg.debug.memory.storage import Buffer
from bragg.debug.state import Listeners
from bragg.debug.texts.neutral import filler_hint
from bragg.debug.values import LOADS
from bragg.model import Severity
from bragg.model.table import Array

# Of one kernel; each is executed once more.
_MOST_LAUNCHES = 16
_REDUCTIONS = {"max", "min", "argmax", "argmin", "sum", "xor_sum", "reduce", "reduce_or", "softmax"}


@dataclass(frozen=True)
class _Load:
    """A load that gives a value to lanes that its mask leaves out.

    Attributes:
        file: Of its line.
        line: The line.
        buffer: What it reads.
    """

    file: str
    line: int
    buffer: Buffer

    @property
    def place(self) -> tuple[str, int]:
        """File and line."""
        return self.file, self.line

    def fix(self, neutral: float) -> str:
        """What to do about lanes that count where a value changes nothing."""
        hint = filler_hint(*self.place, self.buffer.name, self.buffer.dtype.name)
        if "tl.where" not in hint and hint.endswith("other=0") != self._is_zero():
            return hint
        value = {np.inf: "float('inf')", -np.inf: "-float('inf')"}.get(neutral, f"{neutral}")
        return f"Give these lanes the value {value} before the reduction, with tl.where"

    def _is_zero(self) -> bool:
        """The value that the load gives is 0, and not infinite."""
        values = [_other(call) for call in accesses_at(*self.place, "load", self.buffer.name)]
        with suppress(ValueError):
            return all(value is None or ast.literal_eval(value) == 0 for value in values)
        return False


def _other(call: ast.Call) -> ast.expr | None:
    """What lanes that are off get; None: zeros."""
    named = [word.value for word in call.keywords if word.arg == "other"]
    return named[0] if named else call.args[2] if len(call.args) > 2 else None


class _WithoutLanes:
    """A launch executed once more, with lanes left out of its reductions.

    Attributes:
        counted: Loads with lanes that a reduction counts otherwise; its line, and the value that changes nothing there.
    """

    def __init__(self, launch: Launch) -> None:
        self._launch = launch
        self._loads: dict[tuple[str, int, str], _Load] = {}
        self.counted: dict[_Load, tuple[tuple[str, int], float]] = {}

    def run(self, listeners: Listeners) -> None:
        """Execute it."""
        listeners.access = [*listeners.access, self._mark]
        listeners.left_out = self._count
        self._launch.run_again(listeners)

    def _mark(self, access: Access) -> None:
        if not _leaves_out(access):
            return
        key = (*access.place, access.buffer.name)
        self._loads.setdefault(key, _Load(*access.place, access.buffer))
        order = list(self._loads).index(key)
        access.origin = LOADS[order] if order < len(LOADS) else 0

    def _count(self, taint: Array, neutral: float) -> None:
        bits = int(np.bitwise_or.reduce(taint, axis=None))
        for bit, load in zip(LOADS, self._loads.values(), strict=False):
            if bits & bit:
                self.counted.setdefault(load, (kernel_line(), neutral))
                return  # Others of the same lanes are beside it.


def _watch(record: LaunchFindings) -> Listeners:
    launch, counts = record.launch, record.report.without_lanes
    if launch.only is not None or not launch.is_in_host_memory or counts[launch.kernel] >= _MOST_LAUNCHES:
        return Listeners()
    if not any(map(_reduces, texts_of(launch.program))):
        return Listeners()
    replay = Replay(launch)
    places: set[tuple[str, int]] = set()

    def look(access: Access) -> None:
        replay.see(access)
        if access.place not in places and _leaves_out(access):
            places.add(access.place)

    def compare() -> None:
        if places:
            counts[launch.kernel] += 1
            _compare(record, replay)

    return Listeners(access=[look], end=[compare])


def _reduces(text: Text) -> bool:
    if _reduces not in text.found:
        calls = (node for node in text.nodes if isinstance(node, ast.Call))
        text.found[_reduces] = any(name_of(call) in _REDUCTIONS for call in calls)
    found: bool = text.found[_reduces]
    return found


def _leaves_out(access: Access) -> bool:
    """A load with lanes that are off, and that get a value."""
    if access.kind != "load" or access.mask is None or access.mask.all():
        return False
    return access_text(*access.place, access.kind, access.buffer.name).has_filler


def _compare(record: LaunchFindings, replay: Replay) -> None:
    without = _WithoutLanes(record.launch)
    try:
        differences = [one for one in replay.differences(without.run) if np.isfinite(one.after)]
    except (KernelFault, Unsupported):
        return
    if differences:
        for load, (reduction, neutral) in without.counted.items():
            _tell(record, load, reduction, load.fix(neutral), differences[0])


def _tell(record: LaunchFindings, load: _Load, reduction: tuple[str, int], fix: str, difference: Difference) -> None:
    text = access_text(*load.place, "load", load.buffer.name)
    record.at_source(
        *load.place,
        "lanes that the mask leaves out count in a reduction, and change its result",
        fix,
        Severity.WARNING,
        load.buffer,
        f"{difference.element} is {difference.before}, and {difference.after} without these lanes",
        reduction,
        "counted at",
        text,
    )


MASKED_LANES = Checker("masked-lanes", "values of masked-off lanes that a reduction counts", True, _watch)
