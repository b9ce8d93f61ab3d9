"""The sessions of this process, by number."""

from __future__ import annotations

import atexit
import itertools
import os
import shutil
import tempfile
import time
import warnings
from pathlib import Path

from bragg import formats
from bragg.errors import BackendUnavailable, BraggError, NothingRecorded
from bragg.model import Profile
from bragg.proton import files, open_scopes
from bragg.proton.errors import InvalidArgument, ProfilerUnavailable, UnknownSession
from bragg.proton.flags import flags
from bragg.proton.metric_values import forget_types
from bragg.proton.placing import place
from bragg.proton.settings import Settings
from bragg.record import Session
from bragg.record.core import core
from bragg.record.environment import claim_doors
from bragg.record.notes import note

__all__ = ["ProtonSession", "finalize", "find", "running", "start"]


class ProtonSession:
    """One session, from its start until its files are written.

    Args:
        number: By which the program knows it.
        settings: What it records.

    Raises:
        ProfilerUnavailable: Its profiler cannot measure here.
        RecordingFailed: Nothing can be written beside its files.
    """

    def __init__(self, number: int, settings: Settings) -> None:
        self.number = number
        self.settings = settings
        self._started_ns = time.time_ns()
        self._pid = os.getpid()
        self._directory = tempfile.mkdtemp(prefix="bragg-") if settings.is_standard_output else None
        self._output = f"{self._directory}/stdout" if self._directory else settings.name
        config = settings.config(self._output)
        for lost in claim_doors(os.environ, config, core.library_path()):
            warnings.warn(lost, RuntimeWarning, stacklevel=5)
        try:
            self._session = Session(config, self._write)
        except BackendUnavailable as error:
            raise ProfilerUnavailable(error.message, tried=error.tried, hint=error.hint) from error
        self._format = ""

    @property
    def is_own(self) -> bool:
        """Whether this process started it: a forked child has its parent's sessions in memory."""
        return self._pid == os.getpid()

    def activate(self) -> None:
        """Record again after `deactivate`."""
        self._session.activate()

    def deactivate(self, *, flushing: bool) -> None:
        """Pause.

        Args:
            flushing: Wait for the GPU first, so that all that was launched is there.
        """
        self._session.deactivate()

    def finalize(self, wished_format: str | None) -> None:
        """End the session and write its file.

        Raises:
            InvalidArgument: The format does not fit; the session goes on.
            RecordingFailed: The file cannot be written; the capture is kept, and named.
        """
        self._format = files.choose_format(self.settings.data, wished_format or self.settings.flushed_format)
        try:
            self._session.stop()
        except NothingRecorded:
            self._write_nothing()
        else:
            assert self._session.path is not None
            self._deliver(self._session.path)
        if self._directory:
            shutil.rmtree(self._directory, ignore_errors=True)

    def _write_nothing(self) -> None:
        path = Path(f"{self._output}.empty")
        files.write(None, path, self._format)
        self._deliver(path)

    def _deliver(self, path: Path) -> None:
        """Give a written file its name, or print it."""
        if self._directory:
            files.print_file(path)
        else:
            place(path, Path(f"{self.settings.name}.{self._format}"), self._started_ns)

    def _write(self, capture: Path, path: Path) -> Profile:
        profile = formats.load(capture)
        files.write(profile, path, self._format)
        return profile


_numbers = itertools.count()
_sessions: dict[int, ProtonSession] = {}
_ended: set[int] = set()


def start(settings: Settings) -> int:
    """Start a session, or go on with the one of the same name.

    Returns:
        Its number.

    Raises:
        InvalidArgument: Another session measures with the same profiler in another mode.
        ProfilerUnavailable: The profiler cannot measure here.
        RecordingFailed: Nothing can be written beside its files.
    """
    for session in running():
        if session.settings.name == settings.name:
            return _go_on(session, settings)
    for session in running():
        if session.settings.profiler == settings.profiler and session.settings.mode != settings.mode:
            raise InvalidArgument(
                "Cannot add a session with the same profiler but a different mode than existing sessions",
                hint=f"Finalize session {session.number} first",
            )
    number = next(_numbers)
    _sessions[number] = ProtonSession(number, settings)
    flags.profiling_on = True
    return number


def running() -> list[ProtonSession]:
    """The sessions that were not finalized, by number."""
    return [session for session in _sessions.values() if session.is_own]


def find(number: int) -> ProtonSession:
    """A session that was not finalized.

    Raises:
        UnknownSession: There is none with this number.
    """
    session = _sessions.get(number)
    if session is None or not session.is_own:
        why = "it was finalized" if number in _ended else "it was never started"
        raise UnknownSession(f"Session has not been initialized: {number}", hint=f"Check the number: {why}")
    return session


def finalize(number: int | None, wished_format: str | None) -> None:
    """End a session, or all, and write the files.

    Raises:
        InvalidArgument: The format is unknown, or does not fit the session; nothing was ended.
        UnknownSession: There never was such a session.
        RecordingFailed: A file cannot be written; the capture is kept, and named.
    """
    chosen = running() if number is None else [] if number in _ended else [find(number)]
    if not chosen:
        what = "no session is running" if number is None else f"session {number} was finalized before"
        warnings.warn(f"finalize: {what}; nothing is written", RuntimeWarning, stacklevel=4)
    for session in chosen:
        files.choose_format(session.settings.data, wished_format)
    for session in chosen:
        _end(session, wished_format)


def _go_on(session: ProtonSession, settings: Settings) -> int:
    if session.settings != settings:
        note(f"session {session.number} {settings.name!r} goes on with the arguments that it was started with")
    session.activate()
    return session.number


def _end(session: ProtonSession, wished_format: str | None) -> None:
    if len(running()) == 1:
        flags.profiling_on = False
        open_scopes.close_all()
        forget_types()
    del _sessions[session.number]
    _ended.add(session.number)
    session.finalize(wished_format)


def _finalize_at_exit() -> None:
    for session in running():
        try:
            _end(session, None)
        except BraggError as error:
            note(f"{error}. {error.hint}")


atexit.register(_finalize_at_exit)
