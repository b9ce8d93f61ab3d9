"""Places where a debugger stops, and elements that are watched."""

from __future__ import annotations

import linecache
import pdb
import re
import sys
from collections.abc import Callable, Sequence

import numpy as np

from bragg.debug import flow
from bragg.debug.access import Access
from bragg.debug.checkers import Checker, Recorder
from bragg.debug.findings import KernelFinding, program_ids
from bragg.debug.program import kernel_line
from bragg.debug.state import Listeners
from bragg.debug.storage import Buffer
from bragg.errors import UsageError
from bragg.registry import CHECKERS

__all__ = ["stop_on", "watcher"]

_ELEMENT = re.compile(r"(\w+)\[\s*(-?\d+(?:\s*,\s*-?\d+)*)\s*\]")


# What bdb sets as the line to stop at when the user says to continue.
_CONTINUE = -1


def stop_on(rules: Sequence[str]) -> Callable[[KernelFinding], None]:
    """What opens the debugger at the kernel's line when one of some checkers finds something.

    Raises:
        UsageError: A name is not that of a checker.
    """
    for rule in rules:
        CHECKERS[rule]

    def stop(finding: KernelFinding) -> None:
        if finding.rule in rules:
            print("\n".join(finding.lines()))
            _open_debugger()

    return stop


def _open_debugger() -> None:
    """Stop at the line of the kernel that is being executed."""
    frame = sys._getframe()
    while frame.f_back is not None and frame.f_globals.get("_bragg") is not flow:
        frame = frame.f_back
    debugger = pdb.Pdb(skip=["bragg.*"])
    debugger.reset()
    debugger.interaction(frame, None)
    if debugger.stoplineno != _CONTINUE:
        debugger.set_trace(frame)


def watcher(text: str) -> Checker:
    """A checker that says who writes one element.

    Args:
        text: Name of the parameter and index: `out[3,5]`.

    Raises:
        UsageError: The text is something else.
    """
    match = _ELEMENT.fullmatch(text.strip())
    if match is None:
        raise UsageError(f"{text!r} is no element of a tensor", hint="Give the parameter and an index: 'out[3,5]'")
    name, index = match[1], tuple(int(part) for part in match[2].split(","))

    def watch(record: Recorder) -> Listeners:
        places = {id(buffer): _offset(buffer, index) for buffer in record.launch.buffers if buffer.name == name}

        def see(access: Access) -> None:
            offset = places.get(id(access.buffer))
            if access.kind != "load" and offset is not None:
                _say(record, access, offset, text)

        return Listeners(access=[see] if places else [])

    return Checker(f"watch {text}", f"who writes {text}", False, watch)


def _offset(buffer: Buffer, index: tuple[int, ...]) -> int:
    if len(index) != len(buffer.shape) or any(not 0 <= i < n for i, n in zip(index, buffer.shape, strict=True)):
        raise UsageError(f"{buffer.name}{list(index)} does not exist", hint=f"Its shape is {list(buffer.shape)}")
    return sum(i * stride for i, stride in zip(index, buffer.strides, strict=True))


def _say(record: Recorder, access: Access, offset: int, text: str) -> None:
    lanes = np.flatnonzero(access.offsets == offset)
    file, line = kernel_line()
    for lane in lanes.tolist():
        place = program_ids(int(access.programs[lane]), record.launch.grid)
        content = "changed" if access.value is None else f"= {access.lane_values()[lane]}"
        code = linecache.getline(file, line).strip()
        print(f"watch: {text} {content} by program {place} at {file}:{line}: {code}")
