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
        block_shift: Of one of 2^n blocks; the others execute code without clocks.
    """

    name: str
    selection: Selection
    block_shift: int = 0


# A cost of 16 % becomes one of 1 %.
_BLOCK_SHIFT = 4
_EVERYTHING = Activities(frozenset(Activity))
_BLOCKS = Level("blocks", Activities(()))

LEVELS = (
    Level("everything", _EVERYTHING),
    Level("without shared memory", Activities(frozenset(Activity) - {Activity.SHARED})),
    Level("waits", Activities(frozenset(each for each in Activity if each.is_wait))),
    Level("everything in one of 16 blocks", _EVERYTHING, _BLOCK_SHIFT),
    _BLOCKS,
)
"""The ladder: a kernel is timed with the first one whose cost is within the budget."""


def levels_of(scopes: Scopes | None, *, has_clusters: bool = False) -> tuple[Level, ...]:
    """The ladder of a kernel.

    Args:
        scopes: A kernel that has some is timed at them alone.
        has_clusters: Its blocks execute the same code, as they work together.
    """
    ladder: tuple[Level, ...] = LEVELS
    if scopes is not None:
        ladder = Level("scopes", scopes), Level("scopes in one of 16 blocks", scopes, _BLOCK_SHIFT), _BLOCKS
    return tuple(level for level in ladder if not (has_clusters and level.block_shift))
