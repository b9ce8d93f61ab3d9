"""The sessions of this process, by number."""

from __future__ import annotations

import atexit
import itertools
import os
import shutil
import tempfile
import time
import warnings
from contextlib import suppress
from pathlib import Path
from typing import TypeAlias

from bragg import formats
from bragg.core import core
from bragg.errors import BackendUnavailable, BadFile, BraggError, NothingRecorded, RecordingFailed
from bragg.model import Profile
from bragg.proton.errors import InvalidArgument, ProfilerUnavailable, UnknownSession
from bragg.proton.flags import flags
from bragg.proton.output import files
from bragg.proton.output.view import CAPTURED_BEFORE
from bragg.proton.recording import open_scopes, timed_values
from bragg.proton.recording.inside_session import InsideSession
from bragg.proton.recording.metric_values import forget_types
from bragg.proton.recording.placing import place
from bragg.proton.recording.settings import INSIDE_PROFILER, Settings, is_disabled
from bragg.record import Session
from bragg.record.environment import claim_injection_variables
from bragg.record.inside.notes import note

__all__ = ["AnySession", "ProtonSession", "drop", "finalize", "find", "running", "start"]


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
        self._format = settings.flushed_format
        self._is_written = False
        self._n_flushed = 0
        self._told_of_graphs = False
        self._directory = tempfile.mkdtemp(prefix="bragg-") if settings.is_standard_output else None
        self._stem = f"{self._directory}/stdout" if self._directory else settings.name
        config = settings.config(self._stem)
        for lost in claim_injection_variables(os.environ, config, core.library_path()):
            warnings.warn(lost, RuntimeWarning, stacklevel=5)
        core.record_nvtx(config.nvtx is not False)
        try:
            self._session = Session(config, formats.finish, self._load)
        except BackendUnavailable as error:
            raise ProfilerUnavailable(error.message, tried=error.tried, hint=error.hint) from error
        if settings.data == "trace":
            timed_values.keep()
        if settings.flushed_format:
            self._session.write_phases(self._flush)

    @property
    def is_own(self) -> bool:
        """Whether this process started it: a forked child has its parent's sessions in memory."""
        return self._session.running

    def activate(self) -> None:
        """Record again after `deactivate`."""
        self._session.activate()

    def deactivate(self, *, flushing: bool) -> None:
        """Pause.

        Args:
            flushing: Wait for the GPU first, so that all that was launched is there.
        """
        self._session.deactivate(flush=flushing)

    def phase_profile(self, phase: int) -> Profile | None:
        """What was recorded in a phase so far; None: nothing.

        Raises:
            InvalidArgument: It is a trace.
            UnknownSession: The phase was cleared, or there was none.
        """
        if self.settings.data != "tree":
            raise InvalidArgument("Only TreeData is supported for getData() for now", hint='start(data="tree")')
        if phase not in self._session.phases:
            raise UnknownSession(f"Phase {phase} has no data.", hint=f"Phases with data: {self._session.phases}")
        return self._read(phase)

    def advance_phase(self) -> int:
        """Begin the next phase, and say its number."""
        return self._session.advance_phase()

    def is_phase_complete(self, phase: int) -> bool:
        """Whether a phase is over and all that was launched in it is recorded."""
        return phase < self._session.phase and self._session.is_phase_complete(phase)

    def clear(self, phase: int, *, up_to: bool) -> None:
        """Forget what was recorded in a phase; the current one begins anew.

        Args:
            phase: Its number.
            up_to: Forget the phases before it, too.
        """
        current = self._session.phase
        if up_to and current > 0:
            self._session.clear(min(phase, current - 1), up_to=True)
        elif phase < current:
            self._session.clear(phase)
        if phase == current or (up_to and phase > current):
            self._session.restart_phase()

    def finalize(self, wanted_format: str | None) -> None:
        """End the session and write its files.

        Raises:
            InvalidArgument: The format does not fit; the session continues.
            RecordingFailed: A file cannot be written; the session is paused.
        """
        self._format = files.choose_format(self.settings.data, wanted_format or self.settings.flushed_format)
        if not self.settings.flushed_format:
            self._session.deactivate(flush=True)
            for phase in self._session.phases:
                self._write(phase, self._read(phase))
            self._is_written = True
        with suppress(NothingRecorded):
            self._session.stop(save=False)
        if self.settings.flushed_format:
            self._flush_empty(self._session.phase + 1)
        if self.settings.data == "trace":
            timed_values.release()
        if self._directory:
            shutil.rmtree(self._directory, ignore_errors=True)

    def _load(self, capture: Path) -> Profile:
        """Read a capture, unless its file is written."""
        if self._is_written:
            raise NothingRecorded("it was taken out")
        if not self.settings.samples_instructions:
            return formats.load(capture)
        from bragg.formats import read_capture

        return read_capture(capture)

    def _read(self, phase: int) -> Profile | None:
        try:
            profile = self._session.phase_profile(phase)
        except NothingRecorded:
            return None
        if CAPTURED_BEFORE in profile.tree.frames.name and not self._told_of_graphs:
            self._told_of_graphs = True
            note(
                "Cannot find graph for graphExecId: kernels of CUDA graphs that were captured before this session have "
                "no call paths of their own; start profiling before the graph is created"
            )
        return profile

    def _flush(self, phase: int, profile: Profile) -> None:
        """Write a phase that is complete, after those before it in which nothing was recorded."""
        self._flush_empty(phase)
        self._write(phase, profile)
        self._n_flushed = phase + 1

    def _flush_empty(self, end: int) -> None:
        """Write the phases up to another one, which have no data."""
        for phase in range(self._n_flushed, end):
            self._write(phase, None)
            self._n_flushed = phase + 1

    def _write(self, phase: int, profile: Profile | None) -> None:
        """Write the file of a phase, or print it."""
        is_part = self._session.phase > 0
        path = Path(f"{self._stem}{f'.part_{phase}' if is_part else ''}.{self._format}")
        unnamed = path.with_name(f".{path.name}.{os.getpid()}")
        try:
            files.write(profile, unnamed, self._format)
            if self._directory:
                files.print_file(unnamed)
            else:
                place(unnamed, path, self._started_ns)
            if profile is not None and is_part:
                timed_values.forget(profile)
        except (BadFile, OSError) as error:
            raise RecordingFailed(
                f"the profile was not written: {error}", hint="What was recorded is kept; finalize again"
            ) from error


_numbers = itertools.count()
AnySession: TypeAlias = "ProtonSession | InsideSession"
_sessions: dict[int, AnySession] = {}
_ended: set[int] = set()


def start(settings: Settings) -> int:
    """Start a session, or continue the one of the same name.

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
    _sessions[number] = (InsideSession if settings.profiler == INSIDE_PROFILER else ProtonSession)(number, settings)
    flags.profiling_on = True
    return number


def drop(number: int) -> None:
    """Forget a session that was started and cannot measure."""
    del _sessions[number]
    _ended.add(number)
    flags.profiling_on = bool(running())


def running() -> list[AnySession]:
    """The sessions that were not finalized, by number."""
    return [session for session in _sessions.values() if session.is_own]


def find(number: int) -> AnySession:
    """A session that was not finalized.

    Raises:
        UnknownSession: There is none with this number.
    """
    session = _sessions.get(number)
    if session is None or not session.is_own:
        why = "it was finalized" if number in _ended else "it was never started"
        raise UnknownSession(f"Session has not been initialized: {number}", hint=f"Check the number: {why}")
    return session


def finalize(number: int | None, wanted_format: str | None) -> None:
    """End a session, or all, and write the files.

    Raises:
        InvalidArgument: The format is unknown, or does not fit the session; nothing was ended.
        UnknownSession: There never was such a session.
        RecordingFailed: A file cannot be written; its session is paused.
    """
    chosen = running() if number is None else [] if number in _ended else [find(number)]
    if not chosen and not is_disabled():
        what = "no session is running" if number is None else f"session {number} was finalized before"
        warnings.warn(f"finalize: {what}; nothing is written", RuntimeWarning, stacklevel=4)
    for session in chosen:
        files.choose_format(session.settings.data, wanted_format)
    failures = [error for session in chosen for error in _end(session, wanted_format)]
    if failures:
        raise failures[0]


def _go_on(session: AnySession, settings: Settings) -> int:
    if session.settings != settings:
        warnings.warn(
            f"session {session.number} {settings.name!r} goes on with the arguments that it was started with",
            RuntimeWarning,
            stacklevel=5,
        )
    session.activate()
    return session.number


def _end(session: AnySession, wanted_format: str | None) -> list[BraggError]:
    """End a session; what could not be written is returned."""
    is_last = len(running()) == 1
    if is_last:
        open_scopes.close_all()
    try:
        session.finalize(wanted_format)
    except BraggError as error:
        return [error]
    del _sessions[session.number]
    _ended.add(session.number)
    if is_last:
        flags.profiling_on = False
        forget_types()
    return []


def _finalize_at_exit() -> None:
    for session in running():
        for error in _end(session, None):
            note(f"{error}. {error.hint}")


atexit.register(_finalize_at_exit)
