"""Where a process that a checked program has started leaves its report."""

from __future__ import annotations

import os
import pickle
import sys
from pathlib import Path

from bragg.debug.report import Report


class Outbox:
    """Where a process leaves its report.

    Args:
        directory: Of the whole check.
    """

    def __init__(self, directory: Path) -> None:
        self._file = directory / f"{os.getpid()}.report"
        self._is_late = False

    def put(self, report: Report) -> None:
        """Leave a report as it is now."""
        new = self._file.with_suffix(".new")
        try:
            new.write_bytes(pickle.dumps(report.contents()))
        except FileNotFoundError:
            if not self._is_late:
                text = "the check is over: what this process launches is no longer reported"
                print(f"bragg: process {os.getpid()}: {text}", file=sys.stderr)
            self._is_late = True
            return
        new.replace(self._file)
