"""Labels of frames on screen."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from pathlib import PurePosixPath

from bragg.model import FrameKind, FrameTable
from bragg.model.ids import FrameId
from bragg.views.text.demangle import demangle
from bragg.views.text.names import short_function, short_symbol
from bragg.views.text.style import printable

SYMBOL_KINDS = (FrameKind.KERNEL, FrameKind.NATIVE)
_OUTSIDE = "code outside of any scope"
# No symbol of a compiler: behind the brackets of a template it has colons or parameters.
_GIVEN_NAME = re.compile(r"<.*|[\w.$-]+<[^<>]*>")
# File names that say nothing without their directory.
_COMMON_FILES = ("__init__.py", "__main__.py")


class CodeFormat(Enum):
    """How code is written as one word, the place first."""

    FULL = "full"
    FILE_FUNCTION_LINE = "file_function_line"
    FUNCTION_LINE = "function_line"
    FILE_FUNCTION = "file_function"

    def text(self, file: str, line: int, function: str) -> str:
        """`/path/file.py:12@step`, `file.py:12@step`, `12@step` or `file.py@step`."""
        name = PurePosixPath(file).name
        place = {
            CodeFormat.FULL: f"{file}:{line}",
            CodeFormat.FILE_FUNCTION_LINE: f"{name}:{line}",
            CodeFormat.FUNCTION_LINE: f"{line}",
            CodeFormat.FILE_FUNCTION: name,
        }
        return f"{place[self]}@{function}"


@dataclass(frozen=True, eq=False)
class Labels:
    """Names and places of frames.

    Attributes:
        frames: The frames.
        full: Whole names and paths instead of short ones.
        code: How code is written instead of name and place; None for these two.
        with_device: Tell kernels of several devices apart.
    """

    frames: FrameTable
    full: bool = False
    code: CodeFormat | None = None
    with_device: bool = True

    def name(self, frame: FrameId) -> str:
        """Name of a frame, demangled, and shortened unless full names are wanted; its place if it has no name."""
        if self.code and self.frames.file[frame]:
            file, name = printable(self.frames.file[frame]), printable(self.frames.name[frame])
            return self.code.text(file, int(self.frames.line[frame]), name)
        if self.full or not self.frames.name[frame]:
            return self.full_name(frame)
        is_native = self.frames.kind[frame] == FrameKind.NATIVE
        name = self._name(frame, short_function if is_native else short_symbol)
        return name.rpartition("<locals>.")[2] if self.frames.kind[frame] == FrameKind.PYTHON else name

    def full_name(self, frame: FrameId) -> str:
        """Name of a frame, demangled and whole; its place if it has no name."""
        return self._name(frame, demangle) or self._where(frame)

    def place(self, frame: FrameId) -> str:
        """Where it is written, `file:line`; empty when unknown, or when it is the name."""
        return self._where(frame) if self.frames.name[frame] else ""

    def _where(self, frame: FrameId) -> str:
        file, line = printable(self.frames.file[frame]), int(self.frames.line[frame])
        if not file or self.code:
            return ""
        if not self.full:
            path = PurePosixPath(file)
            file = "/".join(path.parts[-2:]) if path.name in _COMMON_FILES else path.name
        return f"{file}:{line}" if line else file

    def text(self, frame: FrameId) -> str:
        """Name and place."""
        return f"{self.name(frame)} {self.place(frame)}".rstrip()

    def own_text(self, frame: FrameId) -> str:
        """Name and place beside what ran in this frame and in none below it: the root has a name for that."""
        return _OUTSIDE if self.frames.kind[frame] == FrameKind.ROOT else self.text(frame)

    def in_sentence(self, frame: FrameId) -> str:
        """The same for the middle of a sentence: a name without a place may be any word, and stands in quotes."""
        is_word = not self.place(frame) and self.frames.kind[frame] != FrameKind.ROOT
        return f"'{self.name(frame)}'" if is_word else self.own_text(frame)

    def spellings(self, frame: FrameId) -> tuple[str, ...]:
        """Everything that a search for this frame may be written as."""
        return self.frames.name[frame], self.full_name(frame), self.text(frame), self.frames.label(frame)

    def _name(self, frame: FrameId, readable: Callable[[str], str]) -> str:
        kind, name, device = self.frames.kind[frame], self.frames.name[frame], self.frames.device[frame]
        if kind == FrameKind.ROOT:
            return "total"
        is_symbol = kind in SYMBOL_KINDS and not _GIVEN_NAME.fullmatch(name)
        text = printable(readable(name) if is_symbol else name)
        return f"{text} @gpu{device}" if self._has_several_devices and device >= 0 else text

    @cached_property
    def _has_several_devices(self) -> bool:
        devices = self.frames.device
        return self.with_device and len(set(devices[devices >= 0].tolist())) > 1
