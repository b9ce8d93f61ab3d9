"""What is known of a kernel: a row of the table of kernels."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Configuration", "KernelFacts"]


@dataclass(frozen=True)
class Configuration:
    """How a kernel was launched.

    Attributes:
        count: Launches.
        grid: Blocks in x, y and z.
        block: Threads of a block.
        cluster: Blocks of a cluster; None where there are no clusters.
        registers: Of one thread.
        shared_bytes: Shared memory of one block, static and dynamic.
        local_bytes_per_thread: Spills and stack.
        occupancy: Share of a multiprocessor's warps that can be resident at once, 0 to 1; None: the device is unknown.
        occupancy_limit: What keeps it from being more: `registers`, `shared memory`, `threads` or `blocks`; empty:
            nothing, or unknown.
    """

    count: int
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    cluster: tuple[int, int, int] | None
    registers: int
    shared_bytes: int
    local_bytes_per_thread: int
    occupancy: float | None = None
    occupancy_limit: str = ""


@dataclass(frozen=True)
class KernelFacts:
    """A kernel over all call paths; None: not known.

    Attributes:
        frame: Row of the frame table.
        base: Its name without the specialization.
        time_ns: GPU time.
        count: Launches.
        max_ns: The longest launch.
        flops: Of all widths.
        bytes: To and from memory.
        roof_ns: Time that its flops and bytes take at least; None: it has none, or its device has no known peaks.
        bound: The roof above it: `compute` or `memory`.
        configurations: How it was launched, the most frequent first.
    """

    frame: int
    base: str
    time_ns: float
    count: int
    max_ns: float | None = None
    flops: float | None = None
    bytes: float | None = None
    roof_ns: float | None = None
    bound: str | None = None
    configurations: tuple[Configuration, ...] = ()
