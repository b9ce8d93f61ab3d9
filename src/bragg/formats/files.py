"""Writing files so that a reader never sees half of one, and errors that say what to do."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from bragg.errors import BadFile

__all__ = ["new_file", "open_file"]


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


def _cannot(verb: str, path: Path, error: OSError) -> BadFile:
    return BadFile(
        f"cannot {verb} {path}: {error.strerror or error}", hint="Check the path, its permissions and the free space"
    )


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
