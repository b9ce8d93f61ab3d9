"""Stopping where a value is made that a finding is about, and that the kernel has left when the finding is known."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType

from bragg.debug.checkers import Checker, LaunchFindings
from bragg.debug.checkers.again.replay import Replay
from bragg.debug.findings import KernelFinding
from bragg.debug.flow.place import kernel_line
from bragg.debug.state import Listeners, machine
from bragg.debug.stepping.debugger import kernel_frame

Place = tuple[str, int]


class Origins:
    """Executes a launch again when it has ended, on the memory that it found, and stops at the lines to blame.

    Args:
        stop: Opens the debugger at a frame, about a finding.
    """

    def __init__(self, stop: Callable[[KernelFinding, FrameType], None]) -> None:
        self._stop = stop
        self._waiting: dict[Place, KernelFinding] = {}

    @property
    def checker(self) -> Checker:
        """What watches launches."""
        return Checker("origins", "stops where NaN and infinity are made", False, self._watch)

    def add(self, finding: KernelFinding) -> None:
        """Stop at the line of a finding once the launch has ended."""
        self._waiting[finding.file, finding.line] = finding

    def _watch(self, record: LaunchFindings) -> Listeners:
        replay = Replay(record.launch)

        def find() -> None:
            if not self._waiting:
                return
            print("the launch is executed again, up to where this is made:")
            listeners = Listeners(access=[replay.see], flagged=[self._see], out_of_bounds=[_was_told])
            try:
                with replay.rewound():
                    record.launch.run_again(listeners)
                for file, line in self._waiting:
                    print(f"nothing was made at {file}:{line} this time")
            finally:
                self._waiting.clear()

        return Listeners(access=[replay.see], end=[find])

    def _see(self, _what: str) -> None:
        place = kernel_line()
        finding, frame = self._waiting.get(place), _frame_at(place)
        if finding is None or frame is None or not finding.programs & set(machine().active_programs.tolist()):
            return
        del self._waiting[place]
        self._stop(finding, frame)


def _was_told(*_access: object) -> bool:
    """Lanes outside of their tensor were reported by the first execution."""
    return True


def _frame_at(place: Place) -> FrameType | None:
    frame = kernel_frame(sys._getframe())
    while frame is not None and (frame.f_code.co_filename, frame.f_lineno) != place:
        frame = kernel_frame(frame.f_back)
    return frame
