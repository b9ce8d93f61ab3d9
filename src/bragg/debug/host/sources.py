"""Texts of functions, found once: Triton looks for one each time a function is decorated.

Where a test defines its kernels anew for each of its parameters, that is a fifth of its time.
"""

from __future__ import annotations

import inspect
from types import FunctionType
from typing import Any


class Sources:
    """Python's `inspect`, which remembers the texts of functions while their files do not change."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, int], tuple[list[str], list[str], int]] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(inspect, name)

    def getsourcelines(self, value: Any) -> tuple[list[str], int]:
        """As `inspect.getsourcelines`: the lines, and the number of the first one."""
        if not isinstance(value, FunctionType) or hasattr(value, "__wrapped__"):
            return inspect.getsourcelines(value)
        # All lines of the file are one list until it changes.
        lines, first = inspect.findsource(value)
        key = value.__code__.co_filename, first
        known = self._found.get(key)
        if known is None or known[0] is not lines:
            known = self._found[key] = (lines, *inspect.getsourcelines(value))
        return list(known[1]), known[2]
