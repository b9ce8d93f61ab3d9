"""What frames are called on screen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import PurePosixPath

from bragg.model import FrameKind, FrameTable
from bragg.views.terminal.demangle import demangle
from bragg.views.terminal.names import short_symbol
from bragg.views.terminal.style import printable

__all__ = ["SYMBOL_KINDS", "Labels"]

SYMBOL_KINDS = (FrameKind.KERNEL, FrameKind.NATIVE)
# File names that say nothing without their directory.
_COMMON_FILES = ("__init__.py", "__main__.py")


@dataclass(frozen=True, eq=False)
class Labels:
    """Names and places of frames.

    Attributes:
        frames: The frames.
        full: Whole names and paths instead of short ones.
    """

    frames: FrameTable
    full: bool = False

    def name(self, frame: int) -> str:
        """What runs: demangled, and shortened unless full names are wanted."""
        if self.full:
            return self.full_name(frame)
        name = self._name(frame, short_symbol)
        return name.rpartition("<locals>.")[2] if self.frames.kind[frame] == FrameKind.PYTHON else name

    def full_name(self, frame: int) -> str:
        """What runs: demangled, and whole."""
        return self._name(frame, demangle)

    def place(self, frame: int) -> str:
        """Where it is written, `file:line`; empty when unknown."""
        file, line = printable(self.frames.file[frame]), int(self.frames.line[frame])
        if not file:
            return ""
        if not self.full:
            path = PurePosixPath(file)
            file = "/".join(path.parts[-2:]) if path.name in _COMMON_FILES else path.name
        return f"{file}:{line}" if line else file

    def text(self, frame: int) -> str:
        """Name and place."""
        return f"{self.name(frame)} {self.place(frame)}".rstrip()

    def spellings(self, frame: int) -> tuple[str, ...]:
        """Everything that a search for this frame may be written as."""
        return self.frames.name[frame], self.full_name(frame), self.text(frame), self.frames.label(frame)

    def _name(self, frame: int, readable: Callable[[str], str]) -> str:
        kind, name, device = self.frames.kind[frame], self.frames.name[frame], self.frames.device[frame]
        if kind == FrameKind.ROOT:
            return "total"
        text = printable(readable(name) if kind in SYMBOL_KINDS else name)
        return f"{text} @gpu{device}" if device >= 0 and self._has_several_devices else text

    @cached_property
    def _has_several_devices(self) -> bool:
        devices = self.frames.device
        return len(set(devices[devices >= 0].tolist())) > 1
