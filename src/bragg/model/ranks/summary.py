"""What comparing the ranks of a job needs of each rank, small enough to read a thousand of them in seconds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from bragg.model.ranks.clock import RankClock
from bragg.model.table import Int32Array, Int64Array, Table


@dataclass(frozen=True, eq=False)
class CollectiveCallTable(Table):
    """The different calls of collectives that a rank made.

    Attributes:
        group: Name of the process group; `stream 0` where the profile does not tell: the first stream of NCCL.
        operation: What it does: `all-reduce`.
        dtype: Type of the elements; empty: not known.
        size_bytes: Bytes of the input; -1: not known.
        path: Id of the call path, as of `PathTable`.
    """

    group: list[str]
    operation: list[str]
    dtype: list[str]
    size_bytes: Int64Array
    path: Int64Array


@dataclass(frozen=True, eq=False)
class CollectiveTable(Table):
    """The collectives that a rank took part in, by group and sequence.

    The last four columns count from the start of the recording to the end of the collective: what lies between two
    collectives is a difference, and all ranks end one at the same time, whatever their clocks say.

    Attributes:
        call: Row of the calls.
        sequence: Number within its process group, from 0.
        step: Step of the program; -1: not known.
        start_ns: When the kernel began, CLOCK_REALTIME of the host.
        duration_ns: How long it ran; with the time in which it waited for other ranks.
        exposed_ns: How long of that no other work ran on the GPU; -1: not known.
        compute_ns: Time in which kernels of other kinds ran.
        copy_ns: Time in which memory was copied.
        data_ns: Time in which the program waited for its input.
        launches: Kernels of other kinds.
    """

    call: Int32Array
    sequence: Int64Array
    step: Int32Array
    start_ns: Int64Array
    duration_ns: Int64Array
    exposed_ns: Int64Array
    compute_ns: Int64Array
    copy_ns: Int64Array
    data_ns: Int64Array
    launches: Int64Array

    def copied(self) -> CollectiveTable:
        """The same in arrays of its own, which keep no larger ones alive."""
        return self.replace(**{name: getattr(self, name).copy() for name in self.columns()})


@dataclass(frozen=True, eq=False)
class CollectiveSlices:
    """Which slices of a timeline are collectives, and what they have in common with those of other ranks.

    Attributes:
        row: Of the slice table: [n].
        groups: Names of process groups.
        group: Row of `groups` for each: [n].
        sequence: Number within the group, from 0: [n].
    """

    row: Int64Array
    groups: list[str]
    group: Int32Array
    sequence: Int64Array


@dataclass(frozen=True, eq=False)
class PathTable(Table):
    """Call paths with time of their own.

    Attributes:
        path: 64 bits that are the same on every rank.
        kernel: 64 bits of the last frame alone: the same for a kernel on whatever path.
        is_communication: 1 for kernels of collectives, and for what the host did to launch and to set them up.
        gpu_count: Kernels and copies.
        gpu_ns: Their time.
        host_ns: Time of the host.
    """

    path: Int64Array
    kernel: Int64Array
    is_communication: Int32Array
    gpu_count: Int64Array
    gpu_ns: Int64Array
    host_ns: Int64Array


@dataclass(frozen=True, eq=False)
class RankSummary:
    """One rank.

    Attributes:
        rank: Its number.
        host: Its machine; empty: not known.
        device: Name of its GPU; empty: not known.
        wall_ns: From the first to the last work of its GPU; without any, how long it was recorded.
        is_whole: Whether `collectives` has a row for each one; otherwise one for each group with the sums.
        is_on_cpus: No GPU worked: collectives start when the rank comes, and last until its next operator begins.
        is_cut_short: The recording has no end: the rank was killed, or still runs.
        role: What ranks of equal work have in common.
        clock: What is known of the clock that `start_ns` is of.
        calls: The different calls of collectives.
        collectives: Gives the collectives; those of thousands of ranks are read from files each time.
        paths: Gives the call paths; read only when they are summed or compared.
        labels: Gives the text of each path; read only when it is shown.
        ways: How NCCL did collectives, `RING LL, 4 channels`, by group, operation and bytes of the input: of those of
            different ways the most frequent one. Empty without `--nccl`.
    """

    rank: int
    host: str
    device: str
    wall_ns: int
    is_whole: bool
    is_cut_short: bool
    calls: CollectiveCallTable
    collectives: Callable[[], CollectiveTable]
    paths: Callable[[], PathTable]
    labels: Callable[[], list[str]]
    is_on_cpus: bool = False
    role: tuple[tuple[str, int], ...] = field(default=())
    clock: RankClock = field(default_factory=RankClock)
    ways: Mapping[tuple[str, str, int], str] = field(default_factory=dict)
