"""How much of a kernel is timed, from most to least."""

from __future__ import annotations

from dataclasses import dataclass

from bragg.code.instrument.blocks import Activity
from bragg.code.instrument.segments import Activities, Scopes, Selection

__all__ = ["LEVELS", "Level", "levels_of"]


@dataclass(frozen=True)
class Level:
    """One way to time a kernel.

    Attributes:
        name: As it is shown.
        selection: What is timed.
    """

    name: str
    selection: Selection


_BLOCKS = Level("blocks", Activities(()))

LEVELS = (
    Level("everything", Activities(frozenset(Activity))),
    Level("without shared memory", Activities(frozenset(Activity) - {Activity.SHARED})),
    Level("waits", Activities(frozenset(each for each in Activity if each.is_wait))),
    _BLOCKS,
)
"""The ladder: a kernel is timed with the first one whose cost is within the budget."""


def levels_of(scopes: Scopes | None) -> tuple[Level, ...]:
    """The ladder of a kernel; one with scopes is timed at them alone."""
    return (Level("scopes", scopes), _BLOCKS) if scopes else LEVELS
