"""Runs without a profile. Nothing here needs more memory than Python itself: NumPy and the native core do."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from typing import Any

from bragg.cli.console import say, stream_style, write_json
from bragg.errors import BackendUnavailable
from bragg.record.launcher.process import run_child
from bragg.record.launcher.target import find_target

__all__ = ["empty_run_json", "memory_shortage", "run_unrecorded"]

_NEEDED_BYTES = 300 << 20


def memory_shortage() -> BackendUnavailable | None:
    """Why bragg itself cannot be loaded, if a limit of memory leaves no room for it."""
    if sys.platform == "win32":
        return None
    import resource

    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if not 0 <= limit < _NEEDED_BYTES:
        return None
    return BackendUnavailable(
        f"the limit of memory (ulimit -v: {limit >> 10} KB) leaves no room for bragg",
        hint="Raise it: bragg itself takes about 300 MB of addresses",
    )


def run_unrecorded(target: Sequence[str], reason: BackendUnavailable, *, as_json: bool) -> int:
    """Run a program as it is, and say why it is not recorded.

    Returns:
        Its exit code; negative: the signal that ended it.
    """
    found = find_target(target)
    note = f"{found.stem} is not recorded: {reason.message}"
    say([stream_style(sys.stderr).warning(f"note: {note}"), f"hint: {reason.hint}"])
    started = time.monotonic()
    exit_code = run_child(found.command, os.environ).exit_code
    if as_json:
        write_json("run", empty_run_json(exit_code, time.monotonic() - started, 0, [note]))
    return exit_code


def empty_run_json(exit_code: int, duration_s: float, n_processes: int, notes: Sequence[str]) -> dict[str, Any]:
    """The same object as `RunReport.to_json` for a run without a profile; the reason is its last note."""
    return {
        "exit_code": exit_code,
        "duration_s": round(duration_s, 6),
        "profiles": [],
        "empty_processes": n_processes,
        "notes": [*notes],
    }
