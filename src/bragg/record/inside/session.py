"""A recording that a program makes of itself."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from bragg.errors import BackendUnavailable, BadFile, NothingRecorded, RecordingFailed, UsageError
from bragg.model import Profile
from bragg.record.backends import require_backend
from bragg.record.config import RecordConfig
from bragg.record.inside.phase_writer import PhaseWriter
from bragg.record.inside.phases import Phases, unite
from bragg.record.inside.rank import find_rank
from bragg.record.inside.recording import Recording
from bragg.record.output import Finisher, Loader, Producer, claim, expand, finish_capture, keep_latest, phase_path


class Session:
    """One recording of this process, from its creation to `stop`, in one phase or several.

    Threads: any.

    Args:
        config: What to record and where to write it.
        finisher: Turns a capture into a profile.
        loader: Reads a capture.

    Attributes:
        paths: The files that were written and are kept, by phase. A session that stays in phase 0 has one, named as
            `config` says; otherwise each phase has its own, `<name>.part_<phase>.bragg`.

    Raises:
        BackendUnavailable: The backend cannot measure here.
        RecordingFailed: The capture cannot be written.
    """

    def __init__(self, config: RecordConfig, finisher: Finisher, loader: Loader) -> None:
        self.paths: dict[int, Path] = {}
        self._config = config
        self._finisher = finisher
        self._loader = loader
        self._pid = os.getpid()
        self._stopped = False  # nothing can be asked of it any more
        self._ended = False  # everything has come
        self._profile: Profile | None = None
        self._lock = threading.RLock()
        self._taking = threading.Lock()
        require_backend(config.backend, os.environ)
        self._wanted = expand(config.output, self._producer()).absolute()
        try:
            capture = claim(self._wanted.with_name(f"{self._wanted.name}.part"), set(), force=False)
            self._phases = Phases(capture, self._wanted)
            self._recording = Recording(str(capture), config.options())
        except OSError as error:
            raise RecordingFailed(f"cannot write to {self._wanted.parent}: {error.strerror}") from error
        except RuntimeError as error:
            capture.unlink()
            raise BackendUnavailable(str(error), hint="Run `bragg doctor`") from error
        self._writer: PhaseWriter | None = None
        if config.rotate_s is not None:
            self._start_writer(self._write_file, config.rotate_s)

    @property
    def active(self) -> bool:
        """Whether the session records at this moment."""
        return self.running and self._recording.session.active

    @property
    def running(self) -> bool:
        """Whether the session can be stopped: once, and only in the process that started it."""
        return not self._stopped and os.getpid() == self._pid

    @property
    def backend(self) -> str:
        """Name of the backend that measures."""
        return self._recording.backend.name

    @property
    def path(self) -> Path | None:
        """The latest file that was written; None before."""
        return self.paths[max(self.paths)] if self.paths else None

    @property
    def phase(self) -> int:
        """Number of the current phase, from 0."""
        return self._phases.current

    @property
    def phases(self) -> list[int]:
        """Numbers of the phases that were not cleared, in order; the current one is the last."""
        with self._lock:
            return self._phases.kept

    def activate(self) -> None:
        """Record again after `deactivate`."""
        with self._lock:
            self._check_running()
            self._recording.session.activate()

    def deactivate(self, *, flush: bool = True) -> None:
        """Pause the recording; the session stays attached and keeps what it has.

        Args:
            flush: Wait for the GPU and collect its records. False returns at once.
        """
        with self._lock:
            self._check_running()
            self._recording.session.deactivate(flush)

    def profile(self) -> Profile:
        """Everything recorded so far, except cleared phases. After `stop`, what `stop` returned.

        While the session records, this waits for the GPU to finish what was launched.

        Raises:
            NothingRecorded: Nothing was measured so far.
        """
        with self._lock:
            if self._profile is not None and self._stopped:
                return self._profile
            self._check_running()
            self._recording.session.flush()
            return self._read_all(self._phases.kept)

    def advance_phase(self) -> int:
        """Begin the next phase: what starts from now on belongs to it.

        Kernels belong to the phase they were launched in, also those that finish later. A scope that is open stays
        open: it is counted in the phase it ends in, with its time since that phase began.

        Returns:
            The number of the new phase.

        Raises:
            RecordingFailed: The phase's capture cannot be written; the previous phase continues.
            UsageError: The session was stopped.
        """
        with self._lock:
            self._check_running()
            self._begin(self._phases.current + 1)
            return self._phases.current

    def restart_phase(self) -> None:
        """Forget what the current phase has recorded, and its GPU work that is still running.

        Raises:
            RecordingFailed: A new capture cannot be written; the phase continues.
            UsageError: The session was stopped.
        """
        with self._lock:
            self._check_running()
            self._begin(self._phases.current)

    def is_phase_complete(self, phase: int) -> bool:
        """Whether a phase is over and all its records have come. Does not wait.

        Raises:
            UsageError: There is no such phase.
        """
        with self._lock:
            return self._ended or self._phases.is_complete(phase)

    def phase_profile(self, phase: int) -> Profile:
        """The profile of one phase; of the current one, so far. Waits for the GPU if the phase is not complete.

        Raises:
            NothingRecorded: Nothing was measured in it.
            UsageError: There is no such phase, it was cleared, or the session was stopped.
        """
        with self._lock:
            self._check_running()
            self._phases.capture(phase)
            if not self._phases.is_complete(phase):
                self._recording.session.flush()
            return self._read_all([phase])

    def clear(self, phase: int | None = None, *, up_to: bool = False) -> None:
        """Forget a phase that is over and free its memory. Waits for the GPU if the phase is not complete.

        Args:
            phase: Its number; None: all phases before the current one. Clearing a phase again does nothing.
            up_to: Also clear all phases before it.

        Raises:
            UsageError: There is no such phase, it is the current one, or the session was stopped.
        """
        with self._lock:
            self._check_running()
            last = self._phases.current - 1 if phase is None else phase
            if phase is not None:
                self._phases.check(phase)
            if last == self._phases.current:
                raise UsageError(f"phase {last} still records", hint="Call advance_phase() first, or restart_phase()")
            first = 0 if phase is None or up_to else last
            chosen = [number for number in self._phases.kept if first <= number <= last]
            if not all(map(self._phases.is_complete, chosen)):
                self._recording.session.flush()
            for number in chosen:
                self._phases.drop(number)

    def write_phases(self, write: Callable[[int, Profile], None], *, every_s: float | None = None) -> None:
        """From now on, give each phase to `write` as soon as it is complete, and clear it; the last one at `stop`.

        The phases come in order, on a thread of the session. Phases in which nothing was measured are left out. The
        session then writes no files.

        Args:
            write: Called with the number and the content of a phase. If it raises, stderr says so, and the
                phase is offered again.
            every_s: Time after which the next phase begins, s; None: when the program calls `advance_phase`.

        Raises:
            UsageError: The phases of this session are already written, or it was stopped.
        """
        with self._lock:
            self._check_running()
            if self._writer is not None:
                raise UsageError("the phases of this session are already written as they become complete")

            def take(phase: int, capture: Path) -> Profile:
                profile = self._loader(capture)
                write(phase, profile)
                return profile

            self._start_writer(take, every_s)

    def take_phases(self, take: Callable[[int, Path], object]) -> None:
        """Hand over the captures of all complete phases, oldest first, and clear them.

        Args:
            take: Called with the number and the capture of a phase; it raises NothingRecorded if that is empty.
        """
        with self._taking:
            for phase in self.phases:
                if not self.is_phase_complete(phase):
                    return
                with self._lock:
                    capture = self._phases.capture(phase)
                with suppress(NothingRecorded):
                    take(phase, capture)
                with self._lock:
                    self._phases.drop(phase)

    def stop(self, *, save: bool = True) -> Profile:
        """End the recording and write its profile.

        Args:
            save: False writes no files.

        Returns:
            Everything that was recorded, except phases that were cleared; without the slices of a trace if it was
            written. If phases were written as they became complete, the last one of them.

        Raises:
            NothingRecorded: Nothing was measured between start and stop.
            RecordingFailed: A profile could not be written; its capture is kept, and named.
            UsageError: It was stopped before, or belongs to the parent of this process.
        """
        with self._lock:
            self._check_running()
            self._stopped = True
        if self._writer is not None:
            self._writer.stop()
        with self._lock:
            self._recording.stop()
            self._ended = True
            self._phases.remove_forgotten(force=True)
        try:
            self._finish(save=save)
        except (BadFile, OSError) as error:
            kept = " ".join(str(self._phases.capture(phase)) for phase in self.phases)
            raise RecordingFailed(
                f"the profile was not written: {error}", hint=f"Its capture is kept; try: bragg recover {kept}"
            ) from error
        if self._profile is None:
            raise NothingRecorded("nothing was measured", hint="Did the program run anything to measure?")
        return self._profile

    def _check_running(self) -> None:
        if not self.running:
            raise UsageError("this session was stopped, or belongs to the parent process", hint="Start another one")

    def _begin(self, phase: int) -> None:
        try:
            capture = self._phases.claim_capture(phase)
            self._recording.advance(str(capture), phase)
        except OSError as error:
            raise RecordingFailed(f"phase {phase} cannot be written: {error.strerror}") from error
        except RuntimeError as error:
            capture.unlink()
            raise RecordingFailed(f"phase {phase} cannot be recorded: {error}") from error
        self._phases.begin(phase, capture)

    def _read_all(self, phases: list[int]) -> Profile:
        """Phases as one profile. Those that are not complete were flushed: what follows is not missing.

        Raises:
            NothingRecorded: Nothing was measured in them.
        """
        profile = unite(self._contents(phases))
        if profile is None:
            raise NothingRecorded("nothing was measured so far", hint="Did the program run anything to measure?")
        return profile

    def _contents(self, phases: list[int]) -> Iterator[Profile]:
        for phase in phases:
            with suppress(NothingRecorded):
                profile = self._loader(self._phases.capture(phase))
                yield replace(profile, meta={**profile.meta, "capture": {"complete": True}})

    def _start_writer(self, take: Callable[[int, Path], Profile], every_s: float | None) -> None:
        def remember(phase: int, capture: Path) -> None:
            self._profile = take(phase, capture)

        self._writer = PhaseWriter(self, remember, every_s)
        self._writer.start()

    def _finish(self, *, save: bool) -> None:
        if self._writer is not None:
            self.take_phases(self._writer.take)
        elif save:
            self.take_phases(self._add(self._write_file))
        else:
            self.take_phases(self._add(lambda _, capture: self._loader(capture)))

    def _add(self, take: Callable[[int, Path], Profile]) -> Callable[[int, Path], None]:
        def add(phase: int, capture: Path) -> None:
            profile = take(phase, capture)
            self._profile = unite([self._profile, profile] if self._profile is not None else [profile])

        return add

    def _write_file(self, phase: int, capture: Path) -> Profile:
        """Give a phase its file, and remove the oldest one beyond those to keep."""
        wanted = phase_path(self._wanted, phase) if self.phase > 0 or self._config.rotate_s else self._wanted

        def name(_profile: Profile) -> Path:
            return claim(wanted, set(), force=self._config.force)

        self.paths[phase], profile = finish_capture(capture, self._finisher, name)
        keep_latest(self.paths, self._config.rotate_keep)
        return profile

    def _producer(self) -> Producer:
        rank, _ = find_rank(os.environ) or (None, 1)
        return Producer(Path(sys.argv[0]).stem or "python", self._pid, rank, os.uname().nodename)
