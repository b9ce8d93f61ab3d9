"""How much of a kernel is timed, from most to least."""

from __future__ import annotations

from dataclasses import dataclass

from bragg.code.instrument.blocks import Activity
from bragg.code.instrument.segments import Activities, Scopes, Selection

TYPE_CHECKING = False
if TYPE_CHECKING:
    from bragg.record.instrument.buffers import Plan


@dataclass(frozen=True)
class Level:
    """One way to time a kernel.

    Attributes:
        name: As it is shown.
        selection: What is timed.
        has_all_warps: Warps store what they measure; otherwise one of each partition does.
        block_shift: Of the first wave of blocks and one of 2^n of the others; the rest executes code without clocks.
    """

    name: str
    selection: Selection
    has_all_warps: bool = True
    block_shift: int = 0

    def planned(self, whole: Plan, resident_blocks: int, first_warps: tuple[int, ...]) -> Plan:
        """Where readings go, in memory for all of them.

        Args:
            whole: Of all blocks and warps.
            resident_blocks: That fit on the GPU at once: the first wave.
            first_warps: Of each partition.
        """
        if self.has_all_warps:
            return whole
        return whole.sampled(self.block_shift, resident_blocks if self.block_shift else 0, first_warps)


# Of 16 waves, the first and one of 32 blocks are 9 %: a cost of 11 % becomes one of 1 %.
_BLOCK_SHIFT = 5
_EVERYTHING = Activities(frozenset(Activity))
_WAITS = Activities(frozenset(each for each in Activity if each.is_wait))
_BLOCKS = Level("blocks", Activities(()))

LEVELS = (
    Level("everything", _EVERYTHING),
    Level("without shared memory", Activities(frozenset(Activity) - {Activity.SHARED})),
    Level("waits", _WAITS),
    Level("waits of sampled warps", _WAITS, has_all_warps=False),
    Level("everything in sampled blocks", _EVERYTHING, has_all_warps=False, block_shift=_BLOCK_SHIFT),
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
        ladder = (
            Level("scopes", scopes),
            Level("scopes of sampled warps", scopes, has_all_warps=False),
            Level("scopes in sampled blocks", scopes, has_all_warps=False, block_shift=_BLOCK_SHIFT),
            _BLOCKS,
        )
    return tuple(level for level in ladder if not (has_clusters and level.block_shift))
