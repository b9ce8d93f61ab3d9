"""A debugger for kernels: it knows the author's lines, and nothing of what executes them."""

from __future__ import annotations

import os
import pdb
import sys
from bdb import BdbQuit
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from types import FrameType
from typing import Any, ClassVar

import numpy as np

from bragg.debug.findings import program_ids
from bragg.debug.flow.place import is_kernel
from bragg.debug.state import machine
from bragg.debug.stepping.lines import STOPS

Program = tuple[int, int, int]

_SHOWN_PROGRAMS = 4
# What is between a program and the engine, and above the program.
_LAUNCHERS = ("runpy", "triton")


class KernelDebugger(pdb.Pdb):
    """pdb without the frames of the engine, and with the programs that a stop is about.

    Attributes:
        n_stops: Of all debuggers of this process.
        chosen: The program that the user, or a finding, asks for; None: none.
    """

    n_stops: ClassVar[int] = 0
    chosen: ClassVar[Program | None] = None

    def stop_here(self, frame: FrameType) -> bool:
        """Stop in the author's frames only."""
        return _is_authors(frame) and bool(super().stop_here(frame))

    def setup(self, f: FrameType | None, tb: Any) -> None:
        """Kernels know the names alone that they use: NumPy is `np` at the prompt where they have no other."""
        KernelDebugger.n_stops += 1
        super().setup(f, tb)
        frame = self.curframe
        if frame is not None and is_kernel(frame) and "np" not in frame.f_globals:
            names: Any = self.curframe_locals
            names.setdefault("np", np)

    def user_line(self, frame: FrameType) -> None:
        """Stop before a line; where programs part and meet again nothing of the author's is executed."""
        if not _is_of_no_width(frame):
            super().user_line(frame)

    def get_stack(self, frame: FrameType | None, trace: Any) -> tuple[list[tuple[FrameType, int]], int]:
        """The author's frames, from the program's first one on."""
        stack, current = super().get_stack(frame, trace)
        start = max((k for k, (one, _) in enumerate(stack) if "runpy" in one.f_code.co_filename), default=-1) + 1
        own = [entry for entry in stack[start : current + 1] if _is_authors(entry[0])] or [stack[current]]
        return own, len(own) - 1

    def print_stack_entry(self, frame_lineno: tuple[FrameType, int], prompt_prefix: str = pdb.line_prefix) -> None:
        """The place, and which programs are there."""
        super().print_stack_entry(frame_lineno, prompt_prefix)
        if is_kernel(frame_lineno[0]):
            self.message(_active_programs())
            if self.chosen is not None and _is_active(self.chosen):
                row = _row(self.chosen)
                self.message(
                    f"program {self.chosen} is row {row} of values that differ between programs: p name[{row}]"
                )


def kernel_frame(frame: FrameType | None) -> FrameType | None:
    """A frame, or the innermost of its callers, that executes a kernel; None outside of kernels."""
    while frame is not None and not is_kernel(frame):
        frame = frame.f_back
    return frame


# What bdb sets as the line to stop at when the user says to continue.
_CONTINUE = -1


def open_at(frame: FrameType) -> None:
    """Open a debugger at the line that a frame executes, and step on from there, or to a breakpoint, as the user says.

    Raises:
        BdbQuit: The user says to quit.
    """
    debugger = KernelDebugger()
    debugger.reset()
    debugger.interaction(frame, None)
    if debugger.quitting:
        raise BdbQuit
    chosen = debugger.stopframe, debugger.returnframe, debugger.stoplineno
    continues = debugger.stoplineno == _CONTINUE
    if continues and not debugger.breaks and not _is_traced_by_this_debugger():
        return  # Whoever else traces keeps doing so.
    debugger.set_trace(frame)
    if continues:
        debugger.set_continue()
    else:
        debugger.stopframe, debugger.returnframe, debugger.stoplineno = chosen


@contextmanager
def stepping(program: Program | None = None) -> Iterator[None]:
    """Let `breakpoint()`, `pdb.set_trace()` and lines to stop at open this debugger.

    `PYTHONBREAKPOINT` may name another one.

    Args:
        program: Stop only where this program is among those that get there; None: wherever any does.
    """
    hook, set_trace = sys.breakpointhook, pdb.set_trace
    if os.environ.get("PYTHONBREAKPOINT"):
        yield
        return

    def stop(*arguments: Any, **named: Any) -> None:
        frame = sys._getframe(1)
        if program is None or not is_kernel(frame) or _is_active(program):
            KernelDebugger().set_trace(frame)

    def stop_at_line() -> None:
        frame = kernel_frame(sys._getframe())
        if frame is not None and (program is None or _is_active(program)):
            open_at(frame)

    KernelDebugger.chosen = program
    sys.breakpointhook = pdb.set_trace = stop
    STOPS.stop = stop_at_line
    try:
        yield
    finally:
        sys.breakpointhook, pdb.set_trace = hook, set_trace
        STOPS.stop = KernelDebugger.chosen = None
        if _is_traced_by_this_debugger():
            sys.settrace(None)  # The program has ended while it was stepped through.


def _is_traced_by_this_debugger() -> bool:
    return isinstance(getattr(sys.gettrace(), "__self__", None), KernelDebugger)


def _is_active(program: Program) -> bool:
    """A program is among those that execute the current statement."""
    return _number(program) in machine().active_programs


def _row(program: Program) -> int:
    """Position of a program among those that execute the current statement."""
    return int(np.searchsorted(machine().active_programs, _number(program)))


def _number(program: Program) -> int:
    x, y, _ = machine().grid
    return program[0] + x * (program[1] + y * program[2])


def _active_programs() -> str:
    now = machine()
    active = now.active_programs.tolist()
    shown = ", ".join(str(program_ids(number, now.grid)) for number in active[:_SHOWN_PROGRAMS])
    more = f" and {len(active) - _SHOWN_PROGRAMS} more" if len(active) > _SHOWN_PROGRAMS else ""
    return f"programs: {shown}{more}, of a grid of {now.grid}"


def _is_authors(frame: FrameType) -> bool:
    """A frame of the program or of its kernels, that neither the engine nor a launcher has called."""
    if is_kernel(frame):
        return "triton/language/" not in frame.f_code.co_filename.replace("\\", "/")
    one: FrameType | None = frame
    while one is not None and "runpy" not in one.f_code.co_filename:
        if is_kernel(one) or _package(one) == "bragg":
            return False
        one = one.f_back
    return _package(frame) not in _LAUNCHERS and not frame.f_code.co_filename.startswith("<frozen")


def _package(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", "")).partition(".")[0]


def _is_of_no_width(frame: FrameType) -> bool:
    """The next instruction stands for no text of the author's. Python 3.10 does not tell: it is taken for text."""
    if not is_kernel(frame) or not hasattr(frame.f_code, "co_positions"):
        return False
    _, _, start, end = next(islice(frame.f_code.co_positions(), frame.f_lasti // 2, None))
    return start is not None and start == end
