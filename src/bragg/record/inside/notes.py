"""Talking from inside the target: one line on stderr, never an exception."""

from __future__ import annotations

import os
import sys
from contextlib import suppress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar

    _Result = TypeVar("_Result")


def note(text: str) -> None:
    """Say one line on stderr, if the program has one that takes it."""
    with suppress(Exception):  # The program may have closed it, or put something of its own there.
        sys.stderr.write(f"bragg: process {os.getpid()}: {' '.join(text.split())}\n")


def once(text: str) -> Callable[[], None]:
    """A function that prints one line the first time that it is called."""
    left = [text]

    def say() -> None:
        if left:
            note(left.pop())

    return say


def guarded(function: Callable[..., _Result]) -> Callable[..., _Result | None]:
    """The function, with its exceptions turned into a note: a profiler's failure must not become the program's."""

    def call(*arguments: Any) -> _Result | None:
        try:
            return function(*arguments)
        except Exception as error:  # noqa: BLE001
            note(f"{function.__name__} failed: {error}")
            return None

    return call
