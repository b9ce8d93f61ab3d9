"""One of several things that run in turns, each on a thread of its own: programs, or partitions of one."""

from __future__ import annotations

import _thread
import threading
from collections.abc import Callable
from typing import Any

from bragg.debug.flow.place import kernel_line
from bragg.debug.state import Machine, use


class _Worker:
    """A thread that runs one program after the other: starting one takes as long as a small program."""

    def __init__(self) -> None:
        self._work: Callable[[], Any] | None = None
        self._has_work = _locked()
        threading.Thread(target=self._serve, daemon=True).start()

    def run(self, work: Callable[[], Any] | None) -> None:
        """Do something on the thread; None: end it."""
        self._work = work
        self._has_work.release()

    def _serve(self) -> None:
        while self._has_work.acquire() and self._work is not None:
            work, self._work = self._work, None
            work()


class Workers:
    """Threads for programs, each for another one when its program has ended."""

    def __init__(self) -> None:
        self._idle: list[_Worker] = []

    def run(self, work: Callable[[], Any]) -> _Worker:
        """Do something on a thread, which is given back at the end of it."""
        worker = self._idle.pop() if self._idle else _Worker()
        worker.run(work)
        return worker

    def give_back(self, worker: _Worker) -> None:
        """A thread has done what it had to do, or is about to return from it."""
        self._idle.append(worker)

    def end(self) -> None:
        """End all threads that have nothing to do."""
        while self._idle:
            self._idle.pop().run(None)


def _locked() -> _thread.LockType:
    """A lock of the interpreter itself: those of its library that count take 4 times as long."""
    lock = _thread.allocate_lock()
    lock.acquire()
    return lock


class Turns:
    """One program on a thread; it runs only between `resume` and its next wait.

    Args:
        machine: Executes the program.
        run: The program.
        workers: Threads to run it on.
    """

    def __init__(self, machine: Machine, run: Callable[[], Any], workers: Workers) -> None:
        self.machine = machine
        self.error: BaseException | None = None
        self.is_done = self.was_interrupted = False
        self.waits_at = ("", 0)
        self._run = run
        self._may_run, self._has_stopped = _locked(), _locked()
        self._is_cancelled = False
        machine.turn = self._give_away
        self._workers, self._worker = workers, workers.run(self._work)

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

    def _give_away(self) -> None:
        self.waits_at = kernel_line()
        self._has_stopped.release()
        self._may_run.acquire()
        if self._is_cancelled:
            raise _Cancelled

    def _work(self) -> None:
        self._may_run.acquire()
        try:
            with self.machine.listeners.arithmetic():
                if not self._is_cancelled:
                    self._run()
        except _Cancelled:
            pass
        except BaseException as error:  # noqa: BLE001 - raised again on the thread that launched
            self.error = error
        self.is_done = True
        self._workers.give_back(self._worker)
        self._has_stopped.release()


class _Cancelled(BaseException):
    """Unwinds a program that will never continue."""
