"""Atomics that release too early: what they are to publish is done after them."""

from __future__ import annotations

from bisect import bisect_right

Place = tuple[str, int]
"""File and line."""


class Releases:
    """Where programs release, and when they decide by what others have released."""

    def __init__(self) -> None:
        self._places: dict[int, Place] = {}
        self._last: dict[int, int] = {}
        self._decided: dict[int, list[int]] = {}
        self._last_decision: dict[int, int] = {}

    def release(self, program: int, step: int, place: Place) -> None:
        """A program has released by an atomic at a line."""
        self._places[step] = place
        self._last[program] = step

    def decide(self, program: int, step: int) -> None:
        """A program decides by what an atomic returned; of those after one release, the first is kept."""
        self._last_decision[program] = step
        decided = self._decided.setdefault(program, [])
        if self._last.get(program, -1) > (decided[-1] if decided else -1):
            decided.append(step)

    def before(self, program: int, released: int, step: int) -> Place | None:
        """The line of a release, where the program has waited for nobody from then to a step; None: it may have."""
        decided = self._decided.get(program, [])
        after = bisect_right(decided, released)
        has_waited = after < len(decided) and decided[after] < step
        return None if has_waited else self._places.get(released)

    def has_decided_since(self, program: int, step: int) -> bool:
        """A program has decided by an atomic after a step."""
        return self._last_decision.get(program, -1) > step
