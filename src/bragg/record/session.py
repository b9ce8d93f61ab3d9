"""A recording that a program makes of itself."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from bragg.errors import BackendUnavailable, BadFile, RecordingFailed, UsageError
from bragg.model import Profile
from bragg.record.backends import require_backend
from bragg.record.config import RecordConfig
from bragg.record.output import Finisher, Producer, claim, expand, finish_capture
from bragg.record.rank import find_rank
from bragg.record.recording import Recording

__all__ = ["Session"]


class Session:
    """One recording of this process, from its creation to `stop`.

    Args:
        config: What to record and where to write it.
        finisher: Turns the capture into a profile.

    Attributes:
        path: The profile's file; None until it is written.
        profile: Its content; None until it is written.

    Raises:
        BackendUnavailable: The backend cannot measure here.
        RecordingFailed: The capture cannot be written.
    """

    def __init__(self, config: RecordConfig, finisher: Finisher) -> None:
        self.path: Path | None = None
        self.profile: Profile | None = None
        self._config = config
        self._finisher = finisher
        self._pid = os.getpid()
        self._stopped = False
        require_backend(config.backend, os.environ)
        self._wished = expand(config.output, self._producer()).absolute()
        try:
            self._part = claim(self._wished.with_name(f"{self._wished.name}.part"), set(), force=False)
            self._recording = Recording(str(self._part), config.variables())
        except OSError as error:
            raise RecordingFailed(f"cannot write to {self._wished.parent}: {error.strerror}") from error
        except RuntimeError as error:
            self._part.unlink()
            raise BackendUnavailable(str(error), hint="Run `bragg doctor`") from error

    @property
    def active(self) -> bool:
        """Whether it records at this moment."""
        return self.running and self._recording.session.active

    @property
    def running(self) -> bool:
        """Whether it can be stopped: once, and not in a forked child, whose parent it belongs to."""
        return not self._stopped and os.getpid() == self._pid

    @property
    def backend(self) -> str:
        """Name of the backend that measures."""
        return self._recording.backend.name

    def activate(self) -> None:
        """Record again after `deactivate`."""
        self._recording.session.activate()

    def deactivate(self) -> None:
        """Pause, without giving anything up."""
        self._recording.session.deactivate()

    def stop(self) -> Profile:
        """End the recording and write the profile.

        Raises:
            NothingRecorded: Nothing was measured between start and stop.
            RecordingFailed: The profile could not be written; the capture is kept, and named.
            UsageError: It was stopped before, or belongs to the parent of this process.
        """
        if not self.running:
            raise UsageError("this session was stopped, or belongs to the parent process", hint="Start another one")
        self._stopped = True
        self._recording.stop()
        self.profile = self._finish()
        return self.profile

    def _finish(self) -> Profile:
        try:
            self.path, profile = finish_capture(self._part, self._finisher, self._name)
        except (BadFile, OSError) as error:
            raise RecordingFailed(
                f"the profile was not written: {error}", hint=f"Its capture is kept; try: bragg recover {self._part}"
            ) from error
        return profile

    def _name(self, profile: Profile) -> Path:
        return claim(self._wished, set(), force=self._config.force)

    def _producer(self) -> Producer:
        rank, _ = find_rank(os.environ) or (None, 1)
        return Producer(Path(sys.argv[0]).stem or "python", self._pid, rank, os.uname().nodename)
