"""Starts the recording of a Python process that belongs to a run; `inject/sitecustomize.py` imports it.

Every Python process of a run pays for these imports: the small part of the standard library, and the native core.
"""
# ruff: noqa: PTH110, PTH118
# `pathlib` would add 10 ms to the start of every recorded process.

from __future__ import annotations

import atexit
import json
import os
import signal
import sys
import warnings
from functools import partial
from importlib import import_module
from threading import Thread, active_count

from bragg.core import core
from bragg.record import variables
from bragg.record.hooks.imports import when_imported
from bragg.record.inside.notes import guarded
from bragg.record.inside.recording import Recording
from bragg.record.inside.threads import at_end_of_forked_thread

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import ModuleType
    from typing import Any


# What ends a process that does not ask for it otherwise; SIGINT raises KeyboardInterrupt, which is an ordinary exit.
_ENDING = (signal.SIGTERM, signal.SIGHUP)

# Command lines of processes that run nothing of the program. The fork server's children do, and record themselves.
_IDLE_PROCESSES = ("from multiprocessing.resource_tracker import", "from multiprocessing.forkserver import")

_TIMERS = (
    (signal.ITIMER_REAL, signal.SIGALRM),
    (signal.ITIMER_VIRTUAL, signal.SIGVTALRM),
    (signal.ITIMER_PROF, signal.SIGPROF),
)

# A GPU that hangs may be why a process ends by `os._exit`.
_LEAVE_WITHIN_S = 5.0

_current: ProcessRecording | None = None


def current() -> ProcessRecording | None:
    """The recording that the run started in this process, if it belongs to one."""
    return _current


def start() -> None:
    """Record this process until its end, if it belongs to a run that is still running."""
    global _current
    directory = os.environ.get(variables.CAPTURE_DIR, "")
    if not directory:
        return
    options = json.loads(os.environ[variables.OPTIONS])
    if options["as_proton"]:
        from bragg.record.hooks.alias import PROTON, alias_modules

        alias_modules(PROTON)
    try:
        _current = ProcessRecording(directory, options)
    except FileNotFoundError:  # The directory is gone: this process has outlived its run.
        return
    wish = options["interpret"]
    if wish == "on" or (wish == "auto" and not _current.measures_gpu):
        when_imported("triton", partial(_interpret_launches, options))


def _interpret_launches(options: Mapping[str, Any], triton: ModuleType) -> None:
    """Execute launches on the CPU; what does knows both the recorder and the debugger, and is above both."""
    import_module("bragg.interpreted").interpret_launches(triton, options)


class ProcessRecording:
    """The recording of one process, stopped when it ends and started anew in its forks.

    Args:
        directory: Where the capture goes, as `<pid>.part`.
        options: What to record, as `RecordConfig.options` lists it.
    """

    def __init__(self, directory: str, options: Mapping[str, Any]) -> None:
        self._directory = directory
        is_idle = any(word.startswith(_IDLE_PROCESSES) for word in sys.orig_argv)
        self._recording: Recording | None = Recording(self._part_path(), options, is_active=not is_idle)
        if options.get("watch_s"):
            from bragg.record.inside.standing import report_standing

            report_standing(directory, options["watch_s"])
        atexit.register(guarded(_stop_handled_timers))  # after the next: the last comes first
        atexit.register(guarded(self._stop_at_exit))
        os.register_at_fork(before=_pass_over_own_threads, after_in_child=guarded(self._start_in_fork))
        self._keep_before("_exit", self.stop)
        self._keep_before("execv", self._flush)
        self._keep_before("execve", self._flush)
        for number in _ENDING:
            core.finish_on_signal(number)

    @property
    def measures_gpu(self) -> bool:
        """Kernels are recorded where a GPU executes them."""
        return self._recording is not None and self._recording.backend.name != "cpu"

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
        recording, self._recording = self._recording, None
        if recording is not None:
            recording.stop()

    def _stop_at_exit(self) -> None:
        if getattr(sys, "last_type", None) is KeyboardInterrupt:  # Who presses Ctrl-C waits for no GPU that hangs.
            core.hurry()
        self.stop()

    def _part_path(self) -> str:
        """`<pid>.part`; `<pid>-2.part` and so on for the programs that the process becomes by exec."""
        path = os.path.join(self._directory, f"{os.getpid()}.part")
        image = 1
        while os.path.exists(path):
            image += 1
            path = os.path.join(self._directory, f"{os.getpid()}-{image}.part")
        return path

    def _start_in_fork(self) -> None:
        try:
            if self._recording is not None:
                self._recording.restart(self._part_path())
        except FileNotFoundError:  # As in `start`.
            self._recording = None
        at_end_of_forked_thread(guarded(self.stop))

    def _flush(self) -> None:
        if self._recording is not None:
            self._recording.session.flush()

    def _keep_before(self, name: str, keep: Callable[[], object]) -> None:
        """Keep what was recorded before a function of `os` that skips `atexit`.

        Workers of `multiprocessing` end by `os._exit`, and `exec` makes another program of the process, or fails.
        """
        leave = getattr(os, name)
        keep_in_time = guarded(_within_limit)

        def leaving(*arguments: Any, **options: Any) -> Any:
            try:
                if self._recording is not None:
                    keep_in_time(keep)
            finally:  # A signal handler of the program may raise meanwhile, and does not keep it from leaving.
                result = leave(*arguments, **options)
            return result

        setattr(os, name, leaving)


def _stop_handled_timers() -> None:
    """Stop the timers whose signals have a handler in Python, when nothing of the program will run any more.

    Python is about to remove these handlers, and a signal that comes until the process is gone kills it then. With what
    bragg has imported there is more to tear down, so a timer of 1 ms did so in 25 of 25 runs, instead of 6.
    """
    for timer, number in _TIMERS:
        if callable(signal.getsignal(number)):
            signal.setitimer(timer, 0)


def _pass_over_own_threads() -> None:
    """Keep Python, since 3.12, from warning of a fork for the threads of the recorder, if the program has no others."""
    if sys.version_info >= (3, 12) and active_count() == 1:
        warnings.filterwarnings("ignore", r"This process \(pid=\d+\) is multi-threaded", DeprecationWarning)


def _within_limit(keep: Callable[[], object]) -> None:
    keeping = Thread(target=guarded(keep), daemon=True)
    keeping.start()
    keeping.join(_LEAVE_WITHIN_S)
