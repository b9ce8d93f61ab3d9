"""Which processes of a check still run: each leaves a mark when it starts."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

# Python's own helpers, which run until the program's process has ended.
_HELPERS = ("multiprocessing.resource_tracker", "multiprocessing.forkserver")
# A process that ends with the program is waited for; one that serves for ever must not hold up the report.
_MOST_WAITED_S = 10
_POLL_S = 0.02


class RunningProcesses:
    """The processes that a checked program has started, directly or not.

    Args:
        directory: Of the whole check.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def mark(self, pid: int | None = None, *, launches: bool = False) -> None:
        """A process has started.

        Args:
            pid: The process; None: this one.
            launches: It has imported Triton.
        """
        if any(helper in part for part in sys.orig_argv if pid is None for helper in _HELPERS) and not launches:
            return
        if self._directory.is_dir():
            (self._directory / f"{pid or os.getpid()}.{'launching' if launches else 'running'}").touch()

    def wait(self) -> list[int]:
        """Wait until all have ended.

        Returns:
            Those with Triton that still run.
        """
        deadline = time.monotonic() + float(os.environ.get("BRAGG_CHECK_WAIT_S", _MOST_WAITED_S))
        while (left := self._left("*ing")) and time.monotonic() < deadline:
            time.sleep(_POLL_S)
        return sorted(left & set(self.launching()))

    def launching(self) -> list[int]:
        """Those with Triton that run now."""
        return sorted(self._left("launching"))

    def _left(self, kind: str) -> set[int]:
        return {pid for pid in (int(one.stem) for one in self._directory.glob(f"*.{kind}")) if _runs(pid)}


def _runs(pid: int) -> bool:
    if pid == os.getpid():
        return False
    try:
        return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None
    except ChildProcessError:  # Another process's child, or nobody's.
        pass
    try:
        os.kill(pid, 0)
    except OSError:
        return False
    stat = Path(f"/proc/{pid}/stat")
    return not stat.exists() or stat.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()[0] != "Z"
