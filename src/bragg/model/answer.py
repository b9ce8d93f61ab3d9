"""What a summary answers: where the time went, what holds the kernels back, and why the GPU idled."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Answer", "HotSpot", "Idle", "RoofShares"]


@dataclass(frozen=True)
class HotSpot:
    """Something that took time, wherever it was called from.

    Attributes:
        frame: A row of the frame table that it is named after.
        value: Of the answer's metric.
        share: Of the whole, 0 to 1.
    """

    frame: int
    value: float
    share: float


@dataclass(frozen=True)
class RoofShares:
    """What kernels are bound by, as shares of all GPU time, 0 to 1; the rest is not known.

    Attributes:
        compute: In kernels below the roof of arithmetic.
        memory: In kernels below the roof of memory.
        util: Share of their roofs that both reach together.
    """

    compute: float
    memory: float
    util: float


@dataclass(frozen=True)
class Idle:
    """When a device did nothing between its first and its last work.

    Attributes:
        device: Its ordinal.
        span_ns: From the first to the last work.
        idle_ns: Part of the span in which nothing ran.
        n_gaps: Pauses; None: only a timeline tells.
        late_launch_ns: Part of `idle_ns` that ended because the host launched too late; None likewise.
        queued_ns: Part in which work had been launched and did not run yet; None likewise. The rest is not known.
        process: Id of the process whose work it was; None: of all, or only one was recorded.
    """

    device: int
    span_ns: float
    idle_ns: float
    n_gaps: int | None = None
    late_launch_ns: float | None = None
    queued_ns: float | None = None
    process: int | None = None

    @property
    def share(self) -> float:
        """Of the span, 0 to 1."""
        return self.idle_ns / self.span_ns if self.span_ns else 0.0


@dataclass(frozen=True)
class Answer:
    """The answer in numbers.

    Attributes:
        metric: What `hottest` are shares of; None: no time was recorded.
        total: Of that metric.
        hottest: The largest first.
        n_others: More of them, that are not listed.
        roofs: None: no kernel has both flops or bytes and a known roof.
        idle: One for each device of each process with GPU work.
    """

    metric: str | None
    total: float
    hottest: tuple[HotSpot, ...]
    n_others: int
    roofs: RoofShares | None
    idle: tuple[Idle, ...]
