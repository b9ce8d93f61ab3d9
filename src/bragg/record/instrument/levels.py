"""How much of a kernel is timed, from most to least."""

from __future__ import annotations

from dataclasses import dataclass

from bragg.code.instrument.blocks import Activity

__all__ = ["LEVELS", "Level"]


@dataclass(frozen=True)
class Level:
    """One way to time a kernel.

    Attributes:
        name: As it is shown.
        wanted: What is timed.
    """

    name: str
    wanted: frozenset[Activity]


_ALL = frozenset(Activity)

LEVELS = (
    Level("everything", _ALL),
    Level("without shared memory", _ALL - {Activity.SHARED}),
    Level("waits", frozenset(each for each in Activity if each.is_wait)),
    Level("blocks", frozenset()),
)
"""The ladder: a kernel is timed with the first one whose cost is within the budget."""
