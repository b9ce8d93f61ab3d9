"""How long programs took whose steps cannot be compared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bragg.analyze.comparing.gates import Gate, Gated, Limit, Verdict, named_nowhere, verdict_of
from bragg.analyze.wall.parts import wall_parts
from bragg.analyze.wall.steady import MOSTLY_IDLE
from bragg.model import Profile


@dataclass(frozen=True)
class ProgramTime:
    """The wall time of both sides, and what it tells of the time of their GPUs.

    Attributes:
        wall: The whole runs.
        steady_ns: Their steady states, of one run each; None: not known of both.
        waits: The share of the steady state in which the busiest GPU waited, before and after.
    """

    wall: Verdict
    steady_ns: tuple[int, int] | None = None
    waits: tuple[float, float] = (0.0, 0.0)

    @property
    def is_of_host(self) -> bool:
        """Whether GPUs waited for most of both steady states: their time does not decide then."""
        return min(self.waits) > 1 - MOSTLY_IDLE


def program_time(before: Sequence[Profile], after: Sequence[Profile]) -> ProgramTime | None:
    """The wall time of runs with a GPU; None: one does not tell it, or used none."""
    runs = (*before, *after)
    if not all(run.measured("gpu_time") and run.run.duration_ns for run in runs):
        return None
    wall = verdict_of(Gate(Gated.WALL), before, after, "gpu_time", Limit(0.0), named_nowhere, 1)
    parts = [wall_parts(run) for run in runs]
    steady = [of_run.steady for of_run in parts if of_run and of_run.steady]
    if not len(steady) == len(runs) == 2:
        return ProgramTime(wall)
    one, other = steady
    idle = [1 - max(each.busy.values(), default=1.0) for each in steady]
    return ProgramTime(wall, (one.duration_ns, other.duration_ns), (idle[0], idle[1]))
