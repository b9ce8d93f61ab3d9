"""Sessions that measure inside kernels: what their hook read, and the files."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any, NoReturn

from bragg.errors import RecordingFailed
from bragg.formats.encodings import msgpack
from bragg.proton.errors import InvalidArgument
from bragg.proton.inside.results import Results
from bragg.proton.output import files
from bragg.proton.recording.placing import place
from bragg.proton.recording.settings import Settings
from bragg.record.inside.notes import note

__all__ = ["InsideSession"]


class InsideSession:
    """One session, from its start until its file is written.

    Args:
        number: By which the program knows it.
        settings: What it records.

    Attributes:
        results: What was measured.
    """

    def __init__(self, number: int, settings: Settings) -> None:
        self.number = number
        self.settings = settings
        self.results = Results(keeps_events=settings.data == "trace")
        self._pid = os.getpid()
        self._started_ns = time.time_ns()

    @property
    def is_own(self) -> bool:
        """Whether this process started it."""
        return os.getpid() == self._pid

    def activate(self) -> None:
        """Its hook records again."""

    def deactivate(self, *, flushing: bool) -> None:
        """Its hook pauses; each launch was waited for."""

    def phase_profile(self, phase: int) -> NoReturn:
        """Refused: it has no phases."""
        raise _no_phases()

    def advance_phase(self) -> NoReturn:
        """Refused: it has no phases."""
        raise _no_phases()

    def is_phase_complete(self, phase: int) -> NoReturn:
        """Refused: it has no phases."""
        raise _no_phases()

    def clear(self, phase: int, *, up_to: bool) -> NoReturn:
        """Refused: it has no phases."""
        raise _no_phases()

    def finalize(self, wanted_format: str | None) -> None:
        """Write its file.

        Raises:
            InvalidArgument: The format does not fit.
            RecordingFailed: The file cannot be written.
        """
        name = files.choose_format(self.settings.data, wanted_format)
        if self.results.left_out:
            note(f"{self.results.left_out:,} passages were left out of the trace, which is full")
        content = self._content(name)
        if self.settings.is_standard_output:
            sys.stdout.write(content.decode("utf-8", "surrogateescape"))
            return
        path = Path(f"{self.settings.name}.{name}")
        unnamed = path.with_name(f".{path.name}.{os.getpid()}")
        try:
            unnamed.write_bytes(content)
            place(unnamed, path, self._started_ns)
        except OSError as error:
            raise RecordingFailed(f"the profile was not written: {error}", hint="Finalize again") from error

    def _content(self, name: str) -> bytes:
        if name == "hatchet_msgpack":
            return bytes(msgpack.encode(self.results.tree()))
        found: Any = self.results.trace() if name == "chrome_trace" else self.results.tree()
        indent = None if name == "chrome_trace" else 4
        text = json.dumps(found, indent=indent, ensure_ascii=False)
        return f"\n{text}\n".encode("utf-8", "surrogatepass")


def _no_phases() -> InvalidArgument:
    return InvalidArgument("sessions that measure inside kernels have no phases", hint="Finalize the session")
