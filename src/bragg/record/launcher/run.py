"""Runs a program as a child process that records itself, and turns its captures into profiles."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bragg.core import core
from bragg.errors import BadFile, NothingRecorded, RecordingFailed, UsageError
from bragg.record.backends import require_backend
from bragg.record.backends.backend import Backend
from bragg.record.captures import await_stragglers, list_captures, pid_of
from bragg.record.config import RecordConfig
from bragg.record.environment import recording_environment
from bragg.record.launcher.hang_watch import watching_ranks
from bragg.record.launcher.process import interrupted_by_endings, run_child
from bragg.record.launcher.run_profiles import ProfileWriter, writing_phases
from bragg.record.launcher.target import find_target
from bragg.record.output import Finisher, make_capture_directory

if TYPE_CHECKING:
    from bragg.model import Profile


@dataclass(frozen=True)
class FinishedRun:
    """The profiles of a run.

    Attributes:
        profiles: Path and content of each, the main process's first; of several phases the latest.
        empty: Number of processes in which nothing was recorded; they have no profile.
        earlier: Files of earlier phases.
    """

    profiles: list[tuple[Path, Profile]]
    empty: int
    earlier: list[Path]


@dataclass(frozen=True)
class RunResult:
    """A run that has ended.

    Attributes:
        pid: Of the program.
        exit_code: Exit status of the program; negative: the signal that ended it.
        captures: One a process, the main one's first.
        duration_s: Wall time of the program.
        notes: One line for each thing that could not be recorded.
        config: How it was recorded.
        stem: Short name of the program.
        directory: Where the captures are until `finish`.
        writer: Has written the phases that were over before the end; None: none was.
    """

    pid: int
    exit_code: int
    captures: list[Path]
    duration_s: float
    notes: list[str]
    config: RecordConfig
    stem: str
    directory: Path
    writer: ProfileWriter | None = None

    def finish(self, finisher: Finisher) -> FinishedRun:
        """Write the profiles and remove the captures.

        Raises:
            RecordingFailed: A profile could not be written. Its capture is kept, and named; the others are finished.
        """
        writer = self.writer or ProfileWriter(self.config, self.stem, finisher)
        empty, failures = 0, []
        for capture in self.captures:
            try:
                with interrupted_by_endings():
                    writer.write(capture, exit_code=self.exit_code if pid_of(capture) == self.pid else None)
            except NothingRecorded:
                empty += 1
            except (BadFile, OSError) as error:
                failures.append(f"{capture}: {error}")
            except KeyboardInterrupt as error:
                raise self._unfinished("interrupted") from error
        if failures:
            raise self._unfinished("; ".join(failures))
        shutil.rmtree(self.directory, ignore_errors=True)
        return FinishedRun(list(writer.latest.values()), empty, writer.earlier)

    def _unfinished(self, reason: str) -> RecordingFailed:
        kept = " ".join(str(path) for path in list_captures(self.directory))
        return RecordingFailed(
            f"not every profile was written: {reason}", hint=f"The captures are kept; try: bragg recover {kept}"
        )


def run_target(config: RecordConfig, argv: Sequence[str], finisher: Finisher | None = None) -> RunResult:
    """Run a program to its end, recorded.

    Args:
        config: What to record and where to write it.
        argv: The program and its arguments, as `find_target` takes them.
        finisher: Turns the captures of phases into profiles while the program runs; None: they wait for its end.

    Raises:
        UsageError: There is no such program.
        BackendUnavailable: The backend was asked for by name and cannot be used.
        RecordingFailed: No profile could be written; the program was not started.
    """
    target = find_target(argv)
    backend = require_backend(config.backend, os.environ)
    directory = make_capture_directory(config.output)
    started = time.monotonic()
    try:
        environ, notes = recording_environment(os.environ, config, directory, core.library_path())
        writer = ProfileWriter(config, target.stem, finisher) if finisher and config.rotate_s else None
        watching = watching_ranks(directory, config.watch_s) if config.watch_s else nullcontext()
        with watching, writing_phases(directory, writer) if writer else nullcontext():
            ended = run_child(target.command, environ)
    except UsageError:
        directory.rmdir()
        raise
    duration_s = time.monotonic() - started
    notes = [*_asked_in_vain(config, backend), *notes, *await_stragglers(directory)]
    captures = list_captures(directory, main_pid=ended.pid)
    return RunResult(ended.pid, ended.exit_code, captures, duration_s, notes, config, target.stem, directory, writer)


def _asked_in_vain(config: RecordConfig, backend: Backend) -> list[str]:
    """Requested options that need a GPU, if none is recorded."""
    asked = {
        "instruction samples": config.sampling != "off",
        "clocks inside kernels": bool(config.instrument),
        "calls of the GPU's API": config.gpu_api != "off",
        "counters": bool(config.counters),
        "exact counters": bool(config.exact_kernels),
        "memory of GPUs": config.memory,
    }
    lacking = " and no ".join(what for what, is_wanted in asked.items() if is_wanted)
    return [f"no NVIDIA GPU is recorded here: no {lacking}"] if lacking and backend.name == "cpu" else []
