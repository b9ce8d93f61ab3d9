"""Starts the recording of a Python process that belongs to a run; `inject/sitecustomize.py` imports it.

Every Python process of a run pays for these imports: the small part of the standard library, and the native core.
"""
# ruff: noqa: PTH110, PTH118
# `pathlib` would add 10 ms to the start of every recorded process.

from __future__ import annotations

import atexit
import os
import signal
import sys
import warnings

from bragg.record import variables
from bragg.record.hooks.imports import when_imported
from bragg.record.notes import guarded
from bragg.record.recording import Recording

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType, ModuleType

__all__ = ["ProcessRecording", "current", "start"]

# What ends a process that does not ask for it otherwise; SIGINT raises KeyboardInterrupt, which is an ordinary exit.
_ENDING = (signal.SIGTERM, signal.SIGHUP)

# Command lines of processes that run nothing of the program. The fork server's children do, and record themselves.
_IDLE_PROCESSES = ("from multiprocessing.resource_tracker import", "from multiprocessing.forkserver import")

_current: ProcessRecording | None = None


def current() -> ProcessRecording | None:
    """The recording that the run started in this process, if it belongs to one."""
    return _current


def start() -> None:
    """Record this process until its end, if it belongs to a run that is still going on."""
    global _current
    directory = os.environ.get(variables.CAPTURE_DIR, "")
    if not directory:
        return
    try:
        _current = ProcessRecording(directory)
    except FileNotFoundError:  # The directory is gone: this process has outlived its run.
        return


class ProcessRecording:
    """The recording of one process, stopped when it ends and started anew in its forks.

    Args:
        directory: Where the capture goes, as `<pid>.part`.
    """

    def __init__(self, directory: str) -> None:
        self._directory = directory
        self._recording: Recording | None = Recording(self._part_path(), os.environ)
        self._stopping = False
        self._ending_signal: int | None = None
        if any(word.startswith(_IDLE_PROCESSES) for word in sys.orig_argv):
            self.deactivate()
        # Since 3.12 Python warns of forks beside threads; those of the recorder are not the program's.
        warnings.filterwarnings("ignore", r"This process \(pid=\d+\) is multi-threaded", DeprecationWarning)
        atexit.register(guarded(self.stop))
        os.register_at_fork(after_in_child=guarded(self._start_in_fork))
        when_imported("multiprocessing.util", self._outlive_fork)
        for number in _ENDING:
            if signal.getsignal(number) is signal.SIG_DFL:
                signal.signal(number, self._end)

    def activate(self) -> None:
        """Record again after `deactivate`."""
        if self._recording is not None:
            self._recording.session.activate()

    def deactivate(self) -> None:
        """Pause, without giving anything up."""
        if self._recording is not None:
            self._recording.session.deactivate()

    def stop(self) -> None:
        """Complete the capture; what runs later is not recorded."""
        if self._stopping:
            return
        self._stopping = True
        try:
            if self._recording is not None:
                self._recording.stop()
        finally:
            self._recording = None
            self._stopping = False
            if self._ending_signal is not None:
                _end_by(self._ending_signal)

    def _part_path(self) -> str:
        """`<pid>.part`; `<pid>-2.part` and so on for the programs that the process becomes by exec."""
        path = os.path.join(self._directory, f"{os.getpid()}.part")
        image = 1
        while os.path.exists(path):
            image += 1
            path = os.path.join(self._directory, f"{os.getpid()}-{image}.part")
        return path

    def _start_in_fork(self) -> None:
        self._stopping = False
        self._ending_signal = None
        try:
            if self._recording is not None:
                self._recording.restart(self._part_path())
        except FileNotFoundError:  # As in `start`.
            self._recording = None

    def _outlive_fork(self, util: ModuleType) -> None:
        """Stop at the end of forked workers, which `multiprocessing` ends without `atexit`."""

        def finalize(recording: ProcessRecording) -> None:
            util.Finalize(None, guarded(recording.stop), exitpriority=-100)

        util.register_after_fork(self, finalize)

    def _end(self, number: int, frame: FrameType | None) -> None:
        """Stop, then end by the signal after all; a stop that is under way is not cut short."""
        self._ending_signal = number
        if not self._stopping:
            guarded(self.stop)()
            _end_by(number)


def _end_by(number: int) -> None:
    """End as if the signal had not been caught, so that the exit status tells it."""
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
