"""Which profile a command reads."""

from __future__ import annotations

from pathlib import Path

import click

from bragg.errors import UsageError

__all__ = ["file_argument", "newest_profile"]

file_argument = click.argument("file", required=False, type=click.Path(path_type=Path))


def newest_profile(file: Path | None, directory: Path | None = None) -> Path:
    """The file that was named, or the profile written last.

    Args:
        file: As named on the command line; None when it was not.
        directory: Where to look; None for the current one.

    Raises:
        UsageError: No file was named and there is none.
    """
    if file is not None:
        return file
    profiles = (directory or Path()).glob("*.bragg")
    newest = max(profiles, key=lambda path: path.stat().st_mtime_ns, default=None)
    if newest is None:
        raise UsageError("there is no .bragg file here", hint=_hint(directory or Path()))
    return newest


def _hint(directory: Path) -> str:
    captures = directory.glob(".bragg-*/*.part")
    if (capture := next(captures, None)) is not None:
        return f"A run was killed here, or is still running: bragg recover {capture.parent}"
    return "Record one with: bragg run script.py; or try: bragg demo"
