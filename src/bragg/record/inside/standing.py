"""Reports of where this rank stands, for `bragg run --watch`."""
# ruff: noqa: PTH105, PTH118
# `pathlib` would add 10 ms to the start of every recorded process.

from __future__ import annotations

import json
import os
import sys
import threading
import time

from bragg.core import core
from bragg.record.inside.rank import observed_place
from bragg.record.inside.threads import begin_own_thread
from bragg.record.standing import REPORTS_IN_A_WATCH, SUFFIX

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType


_N_FRAMES = 12


def report_standing(directory: str, watch_s: float) -> None:
    """Write on a thread of its own where the main thread stands, until the process ends."""
    interval_s = watch_s / REPORTS_IN_A_WATCH

    def report() -> None:
        while True:
            time.sleep(interval_s)
            try:
                _write(directory)
            except OSError:  # The run has ended, or its disk is full.
                return

    begin_own_thread(report, "bragg standing")


def standing() -> dict[str, object] | None:
    """Where this process stands; None: it is no rank."""
    rank = observed_place(os.environ).get("rank")
    if rank is None:
        return None
    now_ns = time.monotonic_ns()
    groups = {
        group: {"entered": count, "last": last, "ago_s": (now_ns - at_ns) / 1e9}
        for group, last, count, at_ns in core.collective_progress()
    }
    frame = sys._current_frames().get(threading.main_thread().ident or 0)
    return {"pid": os.getpid(), "rank": rank, "stack": list(_lines(frame)), "groups": groups}


def _lines(frame: FrameType | None) -> Iterator[str]:
    for _ in range(_N_FRAMES):
        if frame is None:
            return
        code = frame.f_code
        yield f"{code.co_filename}:{frame.f_lineno}@{code.co_name}"
        frame = frame.f_back


def _write(directory: str) -> None:
    found = standing()
    if found is None:
        return
    path = os.path.join(directory, f"{os.getpid()}{SUFFIX}")
    with open(f"{path}.new", "w", encoding="utf-8") as file:  # noqa: PTH123
        json.dump(found, file)
    os.replace(f"{path}.new", path)
