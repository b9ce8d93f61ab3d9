"""One of several things that run in turns, each on a thread of its own: programs, or partitions of one."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from bragg.debug.flow.place import kernel_line
from bragg.debug.state import Machine, use

__all__ = ["Turns"]


class Turns:
    """One program on its thread; it runs only between `resume` and its next wait."""

    def __init__(self, machine: Machine, run: Callable[[], Any]) -> None:
        self.machine = machine
        self.error: BaseException | None = None
        self.is_done = self.was_interrupted = False
        self.waits_at = ("", 0)
        self._run = run
        self._may_run, self._has_stopped = threading.Semaphore(0), threading.Semaphore(0)
        self._is_cancelled = False
        machine.turn = self._give_away
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()

    def resume(self) -> None:
        """Run until the program waits or ends."""
        use(self.machine)
        self._may_run.release()
        self._has_stopped.acquire()

    def interrupt(self) -> None:
        """Give the turn away once, though nothing is waited for: others must cope with what was done by now."""
        if not self.was_interrupted:
            self.was_interrupted = True
            self._give_away()

    def cancel(self) -> None:
        """End the thread of a program that waits."""
        if not self.is_done:
            self._is_cancelled = True
            self.resume()
        self._thread.join()

    def _give_away(self) -> None:
        self.waits_at = kernel_line()
        self._has_stopped.release()
        self._may_run.acquire()
        if self._is_cancelled:
            raise _Cancelled

    def _work(self) -> None:
        self._may_run.acquire()
        try:
            with np.errstate(all="ignore"):
                if not self._is_cancelled:
                    self._run()
        except _Cancelled:
            pass
        except BaseException as error:  # noqa: BLE001 - raised again on the thread that launched
            self.error = error
        self.is_done = True
        self._has_stopped.release()


class _Cancelled(BaseException):
    """Unwinds a program that will never go on."""
