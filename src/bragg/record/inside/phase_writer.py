"""A thread that writes out the phases of a session as they become complete."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from bragg.core import core
from bragg.record.inside.notes import note

_LOOK_EVERY_S = 0.2  # One look costs 20 us a phase.


class Phased(Protocol):
    """Anything with phases: a session."""

    @property
    def running(self) -> bool:
        """Whether more phases will come."""

    def advance_phase(self) -> int:
        """Begin another one."""

    def take_phases(self, take: Callable[[int, Path], object]) -> None:
        """Hand out those that are complete."""


class PhaseWriter(threading.Thread):
    """Takes the complete phases of a session, until it is stopped.

    Args:
        session: The session.
        take: As in `Session.take_phases`. A failure is reported, and the phase is offered again.
        every_s: Time after which the next phase begins, s; None leaves that to the program.
    """

    def __init__(self, session: Phased, take: Callable[[int, Path], None], every_s: float | None) -> None:
        super().__init__(name="bragg phases", daemon=True)
        self._session = session
        self.take = take
        self._every_s = every_s
        self._ending = threading.Event()

    def run(self) -> None:
        """Look, advance, write, until `stop`."""
        core.note_own_thread()
        told = ""
        next_phase_s = time.monotonic() + (self._every_s or 0)
        while not self._ending.wait(min(_LOOK_EVERY_S, self._every_s or _LOOK_EVERY_S)):
            try:
                if self._every_s is not None and time.monotonic() >= next_phase_s:
                    next_phase_s += self._every_s
                    self._session.advance_phase()
                self._session.take_phases(self.take)
                told = ""
            except Exception as error:  # noqa: BLE001 (the program's own function may raise anything)
                if self._session.running and str(error) != told:
                    told = str(error)
                    note(f"a phase was not written: {told}")

    def stop(self) -> None:
        """Let the phase that is being written be the last."""
        self._ending.set()
        self.join()
