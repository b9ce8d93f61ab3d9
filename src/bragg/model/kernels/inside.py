"""What clocks inside of kernels said: `bragg run --instrument`."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

WITH_CLOCKS = " (with clocks)"
"""Ends the name of a kernel's launches with clocks."""
WITH_PROBES = " (with probes)"
"""Ends the name of a kernel's launch with probes."""
READING = "<clocks inside kernels>"
"""The state below which the recorder's own work on the GPU stands: it copies what the clocks said."""


@dataclass(frozen=True)
class Line:
    """A line of source; `function` is empty when it is not known."""

    file: str
    line: int
    function: str


@dataclass(frozen=True)
class Stretch:
    """A stretch of a kernel that was timed, in one launch.

    Attributes:
        does: What its warps do: `wait for matrix products`.
        is_wait: They do nothing else.
        lines: Its line, and those that it was inlined at, innermost first.
        in_loop: It is in a loop.
        count: How often warps passed through.
        cycles: That they took, by warp of the block.
        longest: Cycles of one passage.
    """

    does: str
    is_wait: bool
    lines: tuple[Line, ...]
    in_loop: bool
    count: int
    cycles: tuple[int, ...]
    longest: int

    @property
    def total(self) -> int:
        """Cycles of all warps."""
        return sum(self.cycles)


@dataclass(frozen=True)
class Copies:
    """Asynchronous copies of a pipelined loop, in the first blocks.

    Attributes:
        does: How they are made: `begin a tensor copy to shared memory`.
        lines: Where they begin, innermost first.
        ahead: Copies that have begun before the first one is waited for.
        latency: Median cycles from the beginning of a copy to the end of the wait for it, by stage of the pipeline.
        waited: Median cycles of the wait, by stage.
        count: Copies.
    """

    does: str
    lines: tuple[Line, ...]
    ahead: int
    latency: tuple[float, ...]
    waited: tuple[float, ...]
    count: int


@dataclass(frozen=True)
class Count:
    """What a launch with probes counted at one place.

    Attributes:
        probe: `accesses`, `branches` or `values`.
        does: What the program does there: `loads`, `stores`, `branch`.
        lines: Where, innermost first.
        warps: How often warps came by.
        lanes: Lanes that accessed, or branched.
        access_bytes: Of a lane at once; 0: no access.
        sectors: Of 32 bytes, that the lanes of a warp touched together.
        is_back: The branch begins another turn of a loop.
        greatest: Greatest magnitude that was stored, `inf` and `nan` too; None: nothing was looked at.
        first_bad: Block, warp and passage of a NaN or Inf, the first at this place; None: there was none.
    """

    probe: str
    does: str
    lines: tuple[Line, ...]
    warps: int
    lanes: int
    access_bytes: int
    sectors: int
    is_back: bool
    greatest: float | None
    first_bad: tuple[int, int, int] | None

    @property
    def turns(self) -> float | None:
        """Mean turns of the loop that the branch ends; None: it ends none, or the loop never ended."""
        left = 32 * self.warps - self.lanes
        return 32 * self.warps / left if self.is_back and left > 0 else None


@dataclass(frozen=True)
class Meeting:
    """A barrier for the warps of a block, in the first blocks.

    Attributes:
        lines: Where it is, innermost first.
        skew: Median cycles from the first warp's coming to the last one's.
        longest: The same of the worst meeting.
        count: How often the warps met there.
    """

    lines: tuple[Line, ...]
    skew: float
    longest: int
    count: int


@dataclass(frozen=True)
class ScopeValues:
    """What a kernel gave one of its scopes, in one launch.

    Attributes:
        scope: Its name.
        lines: Where it begins, innermost first.
        count: How often a warp gave it a finite value.
        total, least, greatest: Of these values.
        not_finite: How often it gave NaN or an infinite value.
    """

    scope: str
    lines: tuple[Line, ...]
    count: int
    total: float
    least: float
    greatest: float
    not_finite: int


@dataclass(frozen=True)
class Latency:
    """How long something took, in cycles.

    Attributes:
        count: How often.
        total: Of all.
        typical: Median.
        longest: The longest one.
    """

    count: int
    total: int
    typical: float
    longest: int


@dataclass(frozen=True)
class KernelEvent:
    """What a kernel begins at one place and ends at another, in the first blocks.

    Attributes:
        name: That the program gave it.
        lines: Where it begins, innermost first.
        end_lines: Where it ends.
        latency: From the begins to the ends.
        by_value: The same for each value that it was given, such as the turn of a loop.
        unmatched: Begins and ends without a counterpart.
    """

    name: str
    lines: tuple[Line, ...]
    end_lines: tuple[Line, ...]
    latency: Latency
    by_value: tuple[tuple[float, Latency], ...]
    unmatched: int


@dataclass(frozen=True)
class Placement:
    """Where the blocks of one launch ran.

    Attributes:
        multiprocessors: That had blocks.
        busy_ns: Times of the blocks of each, added up.
        resident: Most blocks that one had at a time; 0: not known, as not every block told.
        tail_share: Part of the places for blocks, over the launch, that stood empty after the last block had begun.
    """

    multiprocessors: int
    busy_ns: tuple[int, ...]
    resident: int
    tail_share: float

    @property
    def imbalance(self) -> float:
        """How much longer the busiest one works than the mean, as a share of the mean."""
        mean_ns = sum(self.busy_ns) / len(self.busy_ns) if self.busy_ns else 0
        return max(self.busy_ns) / mean_ns - 1 if mean_ns else 0.0


@dataclass(frozen=True)
class Turns:
    """Turns of the loop in which the first blocks spend most of their time.

    Attributes:
        lines: Of what is timed first in a turn, innermost first.
        typical: Median cycles of a turn.
        first: The same of the first turn.
        longest: Cycles.
        count: Turns; 0: no loop was timed.
    """

    lines: tuple[Line, ...]
    typical: float
    first: float
    longest: int
    count: int


@dataclass(frozen=True)
class WarpGroup:
    """Warps of a block that do the same: a partition of a warp-specialized kernel, or a single warp.

    Attributes:
        first, last: Numbers of its warps.
        begins: What they begin, in the order of the code: `tensor copies`, `matrix products`.
        wait_share: Part of their time in which they did nothing but wait.
    """

    first: int
    last: int
    begins: tuple[str, ...]
    wait_share: float


@dataclass(frozen=True)
class InsideKernel:
    """One kernel with clocks.

    Attributes:
        kernel: Its name.
        level: How much of it was timed; empty: nothing, see `refused`.
        refused: Levels that were not used, each with the reason: `cost`, `spills`, `serialized` or a sentence.
        pairs: Launches without and with clocks that were compared.
        plain_ns, timed_ns: Their median times.
        registers: Of a thread, without and with clocks.
        blocks_at_once: That fit on the GPU, without and with clocks.
        shared_bytes: Of a block, without and with clocks.
        loop_waits: Waiting instructions of its loops whose number clocks changed: opcode, without and with clocks.
        blocks: Of the launch.
        warps: Of a block.
        warps_with_times: That told what they passed through.
        covered_cycles: Of these warps, from their starts to the last passage for which there was room.
        warp_cycles: Of these warps, to their ends.
        read_cycles: What one reading of the clock costs; cycles of stretches are without it.
        clock_cycles: Covered cycles that all readings cost.
        clock_ghz: Of the multiprocessors.
        span_ns: From the first block's start to the last one's end.
        block_ns: Time of the fastest block, the median one and the slowest.
        stretches: In the order of the code.
        placement: Where blocks ran.
        copies: Asynchronous copies, where the code shows which wait is for which.
        meetings: Barriers of the block.
        probed_blocks: Of the launch with probes, that counted; 0: there was none.
        counts: What they counted.
        values: What scopes were given.
        covered_by_warp: Covered cycles by warp of the block.
        partitions: First warp of each partition of a warp-specialized kernel; else warp 0.
        turns: Of its loop.
        events: That the program placed.
        replays: Of the CUDA graph whose last replay is shown; 0: a launch of its own is.
    """

    kernel: str
    level: str
    refused: tuple[tuple[str, str], ...]
    pairs: int
    plain_ns: float
    timed_ns: float
    registers: tuple[int, int]
    blocks_at_once: tuple[int, int]
    shared_bytes: tuple[int, int]
    loop_waits: tuple[tuple[str, int, int], ...]
    blocks: int
    warps: int
    warps_with_times: int
    covered_cycles: int
    warp_cycles: int
    read_cycles: int
    clock_cycles: int
    clock_ghz: float
    span_ns: int
    block_ns: tuple[float, float, float]
    stretches: tuple[Stretch, ...]
    placement: Placement
    copies: tuple[Copies, ...]
    meetings: tuple[Meeting, ...]
    probed_blocks: int
    counts: tuple[Count, ...]
    values: tuple[ScopeValues, ...]
    covered_by_warp: tuple[int, ...]
    partitions: tuple[int, ...]
    turns: Turns
    events: tuple[KernelEvent, ...]
    replays: int

    @property
    def waves(self) -> float | None:
        """How often the blocks fill the multiprocessors; None: not known."""
        places = self.placement.resident * self.placement.multiprocessors
        return self.blocks / places if places else None

    @property
    def cost(self) -> float | None:
        """Share by which clocks made a launch longer, negative if it was shorter; None: not known."""
        return self.timed_ns / self.plain_ns - 1 if self.pairs and self.plain_ns else None

    def time_of_warp(self, warp: int) -> float:
        """Covered cycles of one warp of the block; 0: it was not among those that told."""
        if self.covered_by_warp:
            return self.covered_by_warp[warp] if warp < len(self.covered_by_warp) else 0
        return self.covered_cycles / max(self.warps, 1)

    def groups(self) -> list[WarpGroup]:
        """Its partitions, or, where it has one, its warps; those alone that told, in the order of their numbers."""
        n_warps = len(self.covered_by_warp)
        is_split = len(self.partitions) > 1
        starts = sorted({each for each in self.partitions if each < n_warps}) if is_split else list(range(n_warps))
        found = []
        for first, end in pairwise([*starts, n_warps]):
            covered = sum(self.covered_by_warp[first:end])
            if covered:
                own = [each for each in self.stretches if sum(each.cycles[first:end])]
                waits = sum(sum(each.cycles[first:end]) for each in own if each.is_wait)
                begins = {each.does.removeprefix("begin "): None for each in own if each.does.startswith("begin ")}
                found.append(WarpGroup(first, end - 1, tuple(begins), waits / covered))
        return found

    @property
    def other_cycles(self) -> int:
        """Covered cycles of neither stretches nor clocks: arithmetic, and waiting for registers that loads fill."""
        return max(self.covered_cycles - self.clock_cycles - sum(each.total for each in self.stretches), 0)
