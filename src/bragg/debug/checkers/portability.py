"""Code that runs here and does something else, or does not compile, on a GPU."""

from __future__ import annotations

from bragg.debug.checkers.checker import Checker, Recorder
from bragg.debug.state import Listeners
from bragg.model import Severity

__all__ = ["PORTABILITY"]


def _watch(record: Recorder) -> Listeners:
    def tell(message: str, hint: str) -> None:
        record.at_line(message, hint, Severity.WARNING)

    return Listeners(differs=[tell])


PORTABILITY = Checker("portability", "code that a GPU runs differently or does not compile", True, _watch)
