"""Writing files so that a reader never sees half of one, and errors that say what to do."""

from __future__ import annotations

import gzip
import os
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from bragg.errors import BadFile

__all__ = ["first_bytes", "new_file", "open_content", "open_file", "read_content"]

_GZIP_MAGIC = b"\x1f\x8b"
_PIECE_BYTES = 1 << 20
_HINTS = {"read": "Check the path and its permissions", "write": "Check the path, its permissions and the free space"}


@contextmanager
def new_file(path: Path) -> Iterator[BinaryIO]:
    """A file that takes its name only when it was written completely; any earlier file of that name is replaced.

    Raises:
        BadFile: The file cannot be written.
    """
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
def open_file(path: Path) -> Iterator[BinaryIO]:
    """A file open for reading.

    Raises:
        BadFile: The file cannot be read.
    """
    try:
        with path.open("rb") as file:
            yield file
    except OSError as error:
        raise _cannot("read", path, error) from error


@contextmanager
def open_content(path: Path) -> Iterator[BinaryIO]:
    """The content of a file, which may be compressed with gzip.

    Raises:
        BadFile: The file cannot be read, or its compression is damaged.
    """
    with open_file(path) as file:
        if file.read(2) != _GZIP_MAGIC:
            file.seek(0)
            yield file
            return
        file.seek(0)
        try:
            with gzip.GzipFile(fileobj=file) as content:
                yield content  # type: ignore[misc]
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise BadFile(f"{path} is damaged: {error}", hint="Copy it again") from error


def read_content(path: Path, max_bytes: int) -> bytes:
    """The whole content of such a file.

    Raises:
        BadFile: Likewise, or the content is longer than `max_bytes`.
    """
    pieces: list[bytes] = []
    n_bytes = 0
    with open_content(path) as file:
        while piece := file.read(_PIECE_BYTES):
            pieces.append(piece)
            n_bytes += len(piece)
            if n_bytes > max_bytes:
                raise BadFile(f"{path} is too large: over {max_bytes >> 20} MB", hint="Record less, or fewer threads")
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
    return BadFile(f"cannot {verb} {path}: {error.strerror or error}", hint=_HINTS[verb])


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
