"""The shape of every format plug-in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from bragg.model import Profile

__all__ = ["Format"]


@dataclass(frozen=True)
class Format:
    """A file format that profiles are read from or written to.

    Attributes:
        suffix: What file names of this format end with.
        description: One line for lists of formats.
        magic: First bytes of every file of this format; empty when it is only written.
        read: Reads a whole profile, or only its tree when `trace` is false; None when it is only written.
        write: Writes a profile; None when it is only read.
    """

    suffix: str
    description: str
    magic: bytes = b""
    read: Callable[..., Profile] | None = None
    write: Callable[[Profile, Path], None] | None = None
