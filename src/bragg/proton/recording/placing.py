"""Giving a written file its name, where processes of one job may have chosen the same one."""

from __future__ import annotations

import os
import warnings
from pathlib import Path

from bragg.record.inside.rank import find_rank

__all__ = ["place"]

_placed: set[Path] = set()  # By this process.


def place(file: Path, wanted: Path, since_ns: int) -> Path:
    """Name a file, in the place of an earlier one. One that another rank of the job wrote meanwhile is left alone.

    Args:
        file: The file, in the same directory.
        wanted: Its name; `.rank<n>` is put before the suffix where another rank has it.
        since_ns: When this job started at the latest, CLOCK_REALTIME.

    Raises:
        OSError: It cannot be given a name.
    """
    rank = find_rank(os.environ)
    name = wanted.absolute()
    if rank is not None and name not in _placed and not _is_free(file, name, since_ns):
        name = name.with_name(f"{name.stem}.rank{rank[0]}{name.suffix}")
        warnings.warn(f"another rank wrote {wanted}; this one's profile is {name.name}", RuntimeWarning, stacklevel=2)
    file.replace(name)
    _placed.add(name)
    return name


def _is_free(file: Path, name: Path, since_ns: int) -> bool:
    """Take a name that nobody has, in one step; whether that worked, or an older file has it."""
    try:
        os.link(file, name)
    except FileExistsError:
        return name.stat().st_mtime_ns < since_ns
    return True
