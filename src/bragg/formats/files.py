"""Writing files so that a reader never sees half of one, and errors that say what to do."""

from __future__ import annotations

import difflib
import gzip
import io
import os
import stat
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from bragg.errors import BadFile
from bragg.formats.limits import Limits

_GZIP_MAGIC = b"\x1f\x8b"
_PIECE_BYTES = 1 << 20
# What is read as a whole; 512 MB of JSON take about 5 GB of memory.
_MAX_BYTES = 512 << 20
_HINTS = {"read": "Check the path and its permissions", "write": "Check the path, its permissions and the free space"}


@contextmanager
def new_file(path: Path) -> Iterator[BinaryIO]:
    """A file that takes its name only when it was written completely; any earlier file of that name is replaced.

    Pipes and devices, as /dev/stdout, are written to.

    Raises:
        BadFile: The file cannot be written.
    """
    if path.exists() and not path.is_file():
        with _device(path) as file:
            yield file
        return
    try:
        descriptor, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    except OSError as error:
        raise _cannot("write", path, error) from error
    try:
        # mkstemp makes files private; a profile gets the permissions of any other new file.
        os.fchmod(descriptor, 0o666 & ~_umask())
        with os.fdopen(descriptor, "wb") as file:
            yield file
        Path(temporary).replace(path)
    except OSError as error:
        raise _cannot("write", path, error) from error
    finally:
        Path(temporary).unlink(missing_ok=True)


@contextmanager
def _device(path: Path) -> Iterator[BinaryIO]:
    try:
        with path.open("wb") as file:
            yield file
    except OSError as error:
        raise _cannot("write", path, error) from error


@contextmanager
def open_file(path: Path) -> Iterator[BinaryIO]:
    """A file open for reading.

    Raises:
        BadFile: The file cannot be read, or is a pipe or a device, which may have no end.
    """
    try:
        if not stat.S_ISREG(path.stat().st_mode) and not path.is_dir():
            raise BadFile(f"cannot read {path}: it is not a regular file", hint="Write it to a file first")
        with path.open("rb") as file:
            yield file
    except OSError as error:
        raise _cannot("read", path, error) from error


@contextmanager
def open_content(path: Path) -> Iterator[BinaryIO]:
    """The content of a file, which may be compressed with gzip.

    Raises:
        BadFile: The file cannot be read, its compression is damaged, or it holds too much for its size.
    """
    with open_file(path) as file:
        if file.read(2) != _GZIP_MAGIC:
            file.seek(0)
            yield file
            return
        file.seek(0)
        try:
            with gzip.GzipFile(fileobj=file) as content:
                yield io.BufferedReader(_Bounded(content, path))
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise BadFile(f"{path} is damaged: {error}", hint="Copy it again") from error


class _Bounded(io.RawIOBase):
    """What a compressed file holds, up to its limit."""

    def __init__(self, content: gzip.GzipFile, path: Path) -> None:
        self._content = content
        self._path = path
        self._left_bytes = Limits.of(path).content_bytes

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer.

        Raises:
            BadFile: The content is longer than it may be.
        """
        piece = self._content.read(min(len(buffer), _PIECE_BYTES))
        self._left_bytes -= len(piece)
        if self._left_bytes < 0:
            held = f"over {Limits.of(self._path).content_bytes >> 20} MB"
            raise BadFile(
                f"{self._path} is damaged: it holds {held}, too much for a file of its size",
                hint="Unpack it first if you trust it: gzip -d",
            )
        buffer[: len(piece)] = piece
        return len(piece)


def read_content(path: Path) -> bytes:
    """The whole content of such a file.

    Raises:
        BadFile: The file cannot be read, or its content is longer than 512 MB.
    """
    pieces: list[bytes] = []
    n_bytes = 0
    with open_content(path) as file:
        while piece := file.read(_PIECE_BYTES):
            pieces.append(piece)
            n_bytes += len(piece)
            if n_bytes > _MAX_BYTES:
                raise BadFile(f"{path} is too large: over {_MAX_BYTES >> 20} MB", hint="Record less, or fewer threads")
    return b"".join(pieces)


def first_bytes(path: Path, n_bytes: int) -> tuple[bytes, bytes]:
    """How a file begins, and how its content does; both are the same where that is not compressed.

    Raises:
        BadFile: The file cannot be read.
    """
    with open_file(path) as file:
        start = file.read(n_bytes)
    if not start.startswith(_GZIP_MAGIC):
        return start, start
    try:
        return start, zlib.decompressobj(wbits=31).decompress(start, n_bytes)
    except zlib.error:
        return start, start


def _cannot(verb: str, path: Path, error: OSError) -> BadFile:
    near = _near_miss(path) if verb == "read" and isinstance(error, FileNotFoundError) else None
    hint = f"Did you mean {near}?" if near else _HINTS[verb]
    return BadFile(f"cannot {verb} {path}: {error.strerror or error}", hint=hint)


def _near_miss(path: Path) -> Path | None:
    """A profile or a file of the same kind beside the missing one whose name is close to it; None: there is none."""
    try:
        names = [entry.name for entry in path.parent.iterdir() if entry.suffix in {path.suffix, ".bragg"}]
    except OSError:
        return None
    whole = f"{path.name}.bragg"
    near = [whole] if whole in names else difflib.get_close_matches(path.name, names, n=1)
    return path.with_name(near[0]) if near else None


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
