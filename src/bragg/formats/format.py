"""The shape of every format plug-in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from shlex import quote

from bragg.errors import BadFile
from bragg.model import Profile


@dataclass(frozen=True)
class Format:
    """A file format that profiles are read from or written to.

    Attributes:
        suffix: What file names of this format end with.
        description: One line for lists of formats.
        next_step: What to do with a file that was written, whose name is `{file}`.
        magic: First bytes of every file of this format; empty when they differ, or it is only written.
        sniff: Whether content that starts with these bytes may be of this format; None where `magic` tells. Files of
            such formats may be compressed with gzip.
        read: Reads a whole profile, or only its tree when `trace` is false; None when it is only written.
        write: Writes a profile; None when it is only read.
        compresses: Whether `write` compresses with gzip where the name ends in `.gz`.
    """

    suffix: str
    description: str
    next_step: str = "bragg view {file}"
    magic: bytes = b""
    sniff: Callable[[bytes], bool] | None = None
    read: Callable[..., Profile] | None = None
    write: Callable[[Profile, Path], None] | None = None
    compresses: bool = False

    def begins(self, start: bytes, content: bytes) -> bool:
        """Whether a file may be of this format.

        Args:
            start: Its first bytes.
            content: The same, of what was compressed.
        """
        return self.sniff(content) if self.sniff else bool(self.magic) and start.startswith(self.magic)


def unknown_format(path: Path) -> BadFile:
    """The error for a file that no format can read."""
    if path.suffix == ".py":
        return BadFile(f"{path} is a program, not a profile", hint=f"Record it: bragg run {quote(str(path))}")
    return BadFile(
        f"{path} is not a profile: unknown format",
        hint="Give a .bragg file, the .part file of a run, or a file of Proton, PyTorch, JAX, Nsight Systems (SQLite), "
        "Perfetto, speedscope, pprof or profiling.sampling",
    )


def damaged(path: Path, error: Exception, hint: str) -> BadFile:
    """The error for a file that breaks off or breaks its rules."""
    return BadFile(f"{path} is damaged: {' '.join(str(error).split())}", hint=hint)
