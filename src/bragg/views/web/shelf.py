"""Profiles that are served while their files may change."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from bragg.views.text.style import printable

# Of a directory; each takes memory on both sides.
_MAX_FILES = 8


@dataclass(frozen=True)
class Entry:
    """A file as it stands now.

    Attributes:
        number: Stays the same for a path.
        title: Its name, with its directory where it is a capture.
        version: Another one after every change, also when the run that writes it ends; empty: there is no such file.
    """

    number: int
    title: str
    version: str


class Shelf:
    """Files and directories; of directories the newest profiles, and the captures of runs that continue.

    Threads: any.

    Args:
        paths: What is served.
        pack: Turns a file into what the page reads.
        is_running: Whether the run that writes a capture continues.
    """

    def __init__(
        self, paths: Sequence[Path], pack: Callable[[Path], bytes], is_running: Callable[[Path], bool] = lambda _: False
    ) -> None:
        self._paths = list(paths)
        self._pack = pack
        self._is_running = is_running
        self._numbers: dict[Path, int] = {}
        self._packed: dict[int, tuple[str, bytes]] = {}
        self._lock = threading.Lock()

    def entries(self) -> list[Entry]:
        """The files that can be shown, in the order in which they were named; of directories the newest first."""
        with self._lock:
            return self._look()

    def _look(self) -> list[Entry]:
        found = dict.fromkeys(file for path in self._paths for file in (_files_of(path) if path.is_dir() else [path]))
        for file in found:
            self._numbers.setdefault(file, len(self._numbers))
        return [self._entry(file) for file in found]

    def packed(self, number: int) -> bytes:
        """A profile as the page reads it, made anew if its file changed.

        Raises:
            KeyError: There is no such entry.
            BraggError: The file cannot be read and never could.
        """
        # One at a time: making a page of a long trace takes all the memory that a laptop has to spare.
        with self._lock:
            self._look()
            path = next((path for path, known in self._numbers.items() if known == number), None)
            if path is None:
                raise KeyError(number)
            version = self._version(path)
            if number not in self._packed or (version and self._packed[number][0] != version):
                self._packed[number] = version, self._pack(path)
                while len(self._packed) > max(_MAX_FILES, len(self._paths)):
                    del self._packed[next(iter(self._packed))]
            return self._packed[number][1]

    def _entry(self, path: Path) -> Entry:
        title = path.name if path.suffix != ".part" else str(Path(path.parent.name, path.name))
        return Entry(self._numbers[path], printable(title), self._version(path))

    def _version(self, path: Path) -> str:
        try:
            status = path.stat()
        except OSError:
            return ""
        running = "-running" if path.suffix == ".part" and self._is_running(path) else ""
        return f"{status.st_ino}-{status.st_size}-{status.st_mtime_ns}{running}"


def _files_of(directory: Path) -> list[Path]:
    captures = directory.glob(".bragg-*/*.part")
    dated = sorted(((_changed_ns(path), path) for path in (*directory.glob("*.bragg"), *captures)), reverse=True)
    return [path for _, path in dated[:_MAX_FILES]]


def _changed_ns(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0
