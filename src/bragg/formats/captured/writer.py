"""Whether the process that writes a capture still runs."""

from __future__ import annotations

import os
from pathlib import Path


def is_being_written(capture: Path) -> bool:
    """Whether the process that a capture is named after has it open: its run continues.

    False where that cannot be seen: in another container, for another user, and where there is no /proc.
    """
    pid = capture.name.partition(".")[0].partition("-")[0]
    if not pid.isdecimal():
        return False
    try:
        written = capture.stat()
        open_files = list(Path("/proc", pid, "fd").iterdir())
    except OSError:
        return False
    return any(_is_same(file, written) for file in open_files)


def _is_same(file: Path, other: os.stat_result) -> bool:
    try:
        return os.path.samestat(file.stat(), other)
    except OSError:  # It was closed just now.
        return False
