"""Where a process that a checked program has started leaves its report."""

from __future__ import annotations

import os
import pickle
from pathlib import Path

from bragg.debug.findings import Report

__all__ = ["Outbox"]


class Outbox:
    """Where a process leaves its report.

    Args:
        directory: Of the whole check.
    """

    def __init__(self, directory: Path) -> None:
        self._file = directory / f"{os.getpid()}.report"

    def put(self, report: Report) -> None:
        """Leave a report as it is now."""
        new = self._file.with_suffix(".new")
        new.write_bytes(pickle.dumps(report.contents()))
        new.replace(self._file)
