"""The parts of a run's wall time, which add up: start, warm-up, steady state, teardown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from bragg.grouping.regions import step_noun
from bragg.model.meta.overhead import Overhead


@dataclass(frozen=True)
class Steady:
    """The part of a run that does the same again and again.

    Attributes:
        begins_ns: When it begins, CLOCK_REALTIME.
        ends_ns: When it ends, CLOCK_REALTIME.
        n_steps: Steps in it; 0: none are known.
        step_of: What one step is: `step`, `decoding step`, a turn of the loop or a call of the function or region
            that is named; empty without steps.
        n_launches: Work of the GPU that began in it: kernels, copies and sets.
        busy: Share of it in which each device worked, 0 to 1.
        overhead: What recording it cost, an estimate; None: about as much as in the run, or not known.
    """

    begins_ns: int
    ends_ns: int
    n_steps: int = 0
    step_of: str = ""
    n_launches: int = 0
    busy: Mapping[int, float] = field(default_factory=dict)
    overhead: Overhead | None = None

    @property
    def duration_ns(self) -> int:
        """Its part of the wall time."""
        return self.ends_ns - self.begins_ns

    @property
    def step(self) -> str:
        """What to call a step."""
        return step_noun(self.step_of)

    @property
    def step_ns(self) -> float:
        """Wall time of one step; 0 without steps."""
        return self.duration_ns / self.n_steps if self.n_steps else 0.0


@dataclass(frozen=True)
class WallParts:
    """Where the wall time of a run went.

    Attributes:
        began_ns: When the recording began, CLOCK_REALTIME.
        worked_ns: When the first step began; without steps the first work of a GPU.
        rested_ns: When the steady state ended; without one the last work of a GPU.
        ended_ns: When the recording ended.
        steady: None: it cannot be told from the warm-up.
        gpu_after: Whether GPUs worked on after the steady state: it is not a mere teardown then.
    """

    began_ns: int
    worked_ns: int
    rested_ns: int
    ended_ns: int
    steady: Steady | None
    gpu_after: bool = False

    @property
    def wall_ns(self) -> int:
        """The whole."""
        return self.ended_ns - self.began_ns

    def durations(self) -> Iterator[tuple[str, int]]:
        """Name and duration of each part, in the order of time; they add up to `wall_ns`."""
        yield "start", self.worked_ns - self.began_ns
        if self.steady is None:
            yield "GPU work", self.rested_ns - self.worked_ns
        else:
            yield "warm-up", self.steady.begins_ns - self.worked_ns
            yield "steady", self.steady.duration_ns
        yield "rest" if self.gpu_after else "teardown", self.ended_ns - self.rested_ns
