"""Which profile a command reads."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from bragg.cli.progress import working
from bragg.errors import UsageError

if TYPE_CHECKING:
    from bragg.model import Profile

__all__ = ["file_argument", "loaded", "newest_profile"]

file_argument = click.argument("file", required=False, type=click.Path(path_type=Path))


def newest_profile(file: Path | None, directory: Path | None = None) -> Path:
    """The file that was named, or the profile written last.

    Args:
        file: As named on the command line, which may be a directory to look in; None when it was not.
        directory: Where to look; None for the current one.

    Raises:
        UsageError: No file was named and there is none.
    """
    if file is not None and not file.is_dir():
        return file
    directory = file or directory
    profiles = (directory or Path()).glob("*.bragg")
    newest = max(profiles, key=lambda path: path.stat().st_mtime_ns, default=None)
    if newest is None:
        where = f"in {file}" if file else "here"
        raise UsageError(f"there is no .bragg file {where}", hint=_hint(directory or Path()))
    return newest


def loaded(path: Path, *, trace: bool = True) -> Profile:
    """A profile, and on a terminal that it is being read.

    Args:
        path: The file.
        trace: False leaves the slices out.

    Raises:
        BadFile: It cannot be read.
        NothingRecorded: It holds no measurement.
    """
    from bragg import formats

    with working(f"Reading {path}"):
        return formats.load(path, trace=trace)


def _hint(directory: Path) -> str:
    captures = directory.glob(".bragg-*/*.part")
    if (capture := next(captures, None)) is not None:
        return f"A run was killed here, or is still running: bragg recover {capture.parent}"
    return "Record one with: bragg run script.py; or try: bragg demo"
