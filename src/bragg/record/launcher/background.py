"""Work beside a program that is being run."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def every(interval_s: float, work: Callable[[], None], name: str) -> Iterator[None]:
    """While the body runs, do something again and again, on a thread.

    Args:
        interval_s: Time between two times.
        work: What to do; it raises nothing.
        name: Of the thread.
    """
    ending = threading.Event()

    def repeat() -> None:
        while not ending.wait(interval_s):
            work()

    thread = threading.Thread(target=repeat, name=name)
    # It inherits the mask: signals are for the main thread, which passes them on.
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    thread.start()
    signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    try:
        yield
    finally:
        ending.set()
        thread.join()
