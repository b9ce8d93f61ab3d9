"""What frames are called on screen."""

from __future__ import annotations

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
        kind, name = self.frames.kind[frame], self.frames.name[frame]
        if kind == FrameKind.ROOT:
            return "total"
        if kind in SYMBOL_KINDS:
            name = demangle(name) if self.full else short_symbol(name)
        elif kind == FrameKind.PYTHON and not self.full:
            name = name.rpartition("<locals>.")[2]
        name = printable(name)
        return f"{name} @gpu{self.frames.device[frame]}" if self._shows_device(frame) else name

    def place(self, frame: int) -> str:
        """Where it is written, `file:line`; empty when unknown."""
        file, line = printable(self.frames.file[frame]), int(self.frames.line[frame])
        if not file:
            return ""
        path = PurePosixPath(file)
        short = "/".join(path.parts[-2:]) if path.name in _COMMON_FILES else path.name
        return f"{file if self.full else short}:{line}" if line else file if self.full else short

    def text(self, frame: int) -> str:
        """Name and place."""
        return f"{self.name(frame)} {self.place(frame)}".rstrip()

    def spellings(self, frame: int) -> tuple[str, ...]:
        """Everything that a search for this frame may be written as."""
        name = self.frames.name[frame]
        return name, demangle(name), Labels(self.frames).text(frame), self.frames.label(frame)

    def _shows_device(self, frame: int) -> bool:
        return bool(self.frames.device[frame] >= 0) and self._has_several_devices

    @cached_property
    def _has_several_devices(self) -> bool:
        devices = self.frames.device
        return len(set(devices[devices >= 0].tolist())) > 1
