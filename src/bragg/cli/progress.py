"""What bragg is doing, on one line of the terminal, when it takes longer than a second."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TextIO

from bragg.cli.console import stream_style
from bragg.views.text.style import printable

_PATIENCE_S = 1.0
_EVERY_S = 0.2
_ERASE = "\x1b[K"  # to the end of the line


class StatusLine:
    """The last line of a terminal, which is gone when the work is done; nothing where there is no terminal.

    The cursor stays at its beginning, so that what a program prints meanwhile takes its place.

    Args:
        stream: Where it is shown.
        clock: Seconds.
    """

    def __init__(self, stream: TextIO, clock: Callable[[], float] = time.monotonic) -> None:
        self._stream = stream
        self._clock = clock
        self._began_s = clock()
        self._next_s = self._began_s + _PATIENCE_S
        self.is_possible = stream.isatty() and os.environ.get("TERM") != "dumb"
        self._is_shown = False

    def show(self, make: Callable[[], str]) -> None:
        """Show what is done, and for how long, if it has taken a second and the last time is a while ago."""
        now_s = self._clock()
        if not self.is_possible or now_s < self._next_s:
            return
        self._next_s = now_s + _EVERY_S
        style = stream_style(self._stream)
        room = None if style.width is None else style.width - 1
        line = style.cut(f"{printable(make())}{style.ellipsis} {now_s - self._began_s:.0f} s", room)
        self._write(f"\r{style.dim(line)}{_ERASE}\r")
        self._is_shown = True

    def end(self) -> None:
        """Leave nothing behind."""
        if self._is_shown:
            self._write(f"\r{_ERASE}")
        self._is_shown = False

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()


@contextmanager
def working(text: str) -> Iterator[Callable[[str], None]]:
    """While the body runs, say on a terminal what it does; gives a function that says what it does now.

    Args:
        text: In the form "Reading train.bragg".
    """
    status = StatusLine(sys.stderr)
    if not status.is_possible:
        yield lambda _text: None
        return
    said = [text]
    ended = threading.Event()

    def repeat() -> None:
        while not ended.wait(_EVERY_S):
            status.show(lambda: said[0])
        status.end()

    thread = threading.Thread(target=repeat, name="bragg progress", daemon=True)
    thread.start()
    try:
        yield lambda now: said.__setitem__(0, now)
    finally:
        ended.set()
        thread.join()
