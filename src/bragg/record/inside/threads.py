"""Threads: those of the recorder that execute Python, and the one that a forked child is."""

from __future__ import annotations

import os
import threading
from threading import get_ident, local, main_thread

from bragg.core import core
from bragg.record.inside.notes import guarded

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


_MAIN = main_thread().ident
_of_thread = local()


def at_end_of_forked_thread(call: Callable[[], object]) -> None:
    """Call a function when this thread ends, if this process is a child that another thread than the main one forked.

    Such a child has no thread on which the interpreter ends, and no `atexit`: the process is gone when its last thread
    is, so those of the recorder have to end.
    """
    if main_thread().ident != _MAIN:  # After a fork Python calls the thread that is left the main one.
        _of_thread.ends = [*getattr(_of_thread, "ends", ()), _ThreadEnd(call)]


class _ThreadEnd:
    """Calls a function when the thread that made it ends; for what that thread alone refers to."""

    def __init__(self, call: Callable[[], object]) -> None:
        self._call = call
        self._place = os.getpid(), get_ident()

    def __del__(self) -> None:
        if self._place == (os.getpid(), get_ident()):  # A child forked off another thread drops it too.
            self._call()


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
