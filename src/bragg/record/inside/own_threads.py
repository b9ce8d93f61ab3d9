"""Threads of the recorder that execute Python. The process ends without them when those of the program have."""

from __future__ import annotations

import threading

from bragg.core import core
from bragg.record.inside.notes import guarded

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["begin_own_thread"]


def begin_own_thread(run: Callable[[], object], name: str) -> threading.Thread:
    """Begin a daemon thread that is not the program's.

    Args:
        run: What it does; an exception becomes a note.
        name: Of the thread.
    """

    def own() -> None:
        core.note_own_thread()
        guarded(run)()

    thread = threading.Thread(target=own, name=name, daemon=True)
    thread.start()
    return thread
