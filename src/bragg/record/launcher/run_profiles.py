"""The profiles of a run: their names, and those of phases that end while the program runs."""

from __future__ import annotations

import os
from contextlib import AbstractContextManager
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from bragg.errors import BadFile, NothingRecorded
from bragg.record.captures import has_ended, list_captures, phase_of, pid_of, process_of
from bragg.record.launcher.background import every
from bragg.record.output import Finisher, Producer, claim, expand, finish_capture, keep_latest, phase_path

if TYPE_CHECKING:
    from bragg.model import Profile
    from bragg.record.config import RecordConfig


_LOOK_EVERY_S = 0.5


class ProfileWriter:
    """Writes the profiles of a run, each under a name of its own.

    Args:
        config: How they are named, and how many phases of a process are kept.
        stem: Short name of the program.
        finisher: Turns a capture into a profile.

    Attributes:
        latest: Path and content of each process's latest profile, the first process first.
    """

    def __init__(self, config: RecordConfig, stem: str, finisher: Finisher) -> None:
        self.latest: dict[str, tuple[Path, Profile]] = {}
        self._earlier: dict[str, dict[int, Path]] = {}
        self._config = config
        self._stem = stem
        self._finisher = finisher
        self._names: dict[str, Path] = {}
        self._ranks: set[int | None] = set()
        self._taken: set[Path] = set()

    def write(self, capture: Path, *, exit_code: int | None = None) -> None:
        """Write the profile of a capture and remove the capture.

        Args:
            capture: The capture.
            exit_code: Of its process, negative for a signal; None: not known, or it goes on.

        Raises:
            NothingRecorded: The capture is empty.
            BadFile: The capture is damaged, or the profile cannot be written.
            OSError: The profile cannot be given its name.
        """
        process = process_of(capture)
        written = finish_capture(capture, self._finisher, partial(self._name, capture), exit_code=exit_code)
        if process in self.latest:
            self._retire(process, phase_of(capture))
        self.latest[process] = written

    @property
    def earlier(self) -> list[Path]:
        """The files of phases before the latest."""
        return [path for paths in self._earlier.values() for path in paths.values()]

    def _retire(self, process: str, following: int) -> None:
        """Put a process's latest profile among the earlier ones, by the phase after it; `config` says how many stay."""
        earlier = self._earlier.setdefault(process, {})
        earlier[following] = self.latest[process][0]
        keep = self._config.rotate_keep
        keep_latest(earlier, None if keep is None else keep - 1)

    def _name(self, capture: Path, profile: Profile) -> Path:
        process = process_of(capture)
        if process not in self._names:
            rank = profile.run.rank
            producer = Producer(self._stem, pid_of(capture), rank, profile.run.host or os.uname().nodename)
            self._names[process] = expand(self._config.output, producer, extra=rank in self._ranks)
            self._ranks.add(rank)
        wanted = self._names[process]
        if self._config.rotate_s is not None:
            wanted = phase_path(wanted, phase_of(capture))
        return claim(wanted, self._taken, force=self._config.force)


def writing_phases(directory: Path, writer: ProfileWriter) -> AbstractContextManager[None]:
    """While the body runs, write the phases of a directory's captures that are over, on a thread."""
    return every(_LOOK_EVERY_S, lambda: _write_complete(directory, writer), "bragg phases")


def _write_complete(directory: Path, writer: ProfileWriter) -> None:
    captures = list_captures(directory)
    for capture, following in pairwise(captures):
        try:
            if process_of(capture) == process_of(following) and has_ended(capture):
                writer.write(capture)
        except NothingRecorded:
            continue
        except (BadFile, OSError):  # tried again at the end of the run, and told then
            return
