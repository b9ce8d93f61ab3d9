"""The end of a process that a thread of its parent has forked."""

from __future__ import annotations

import os
from threading import get_ident, local, main_thread

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["at_end_of_forked_thread"]

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
