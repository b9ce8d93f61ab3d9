"""Memory of GPUs while a program was recorded: what PyTorch's allocator handed out, and what was taken from CUDA.

`native/backends/gpu_memory` writes META's `gpu_memory` and `cuda_memory`; who holds it are the metrics of these names.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from bragg.model.facts import Facts
from bragg.model.table import Int64Array

AT_PEAK, AT_END = "gpu_memory_peak", "gpu_memory_end"
CUDA_AT_PEAK, CUDA_AT_END = "cuda_memory_peak", "cuda_memory_end"
PEAKS = {AT_PEAK: "gpu_memory", CUDA_AT_PEAK: "cuda_memory"}
"""Metrics of the moment when most was held, with META's table of it."""
HELD = (*PEAKS, AT_END, CUDA_AT_END)
"""Metrics that are of a moment: those of several phases are not added up."""
JAX_ARRAYS = "jax_arrays"
"""META's table of the snapshot of JAX's arrays; in a capture with the snapshot itself, `pprof`, gzip and base 64."""


_OF_EXTREMES: Mapping[str, tuple[str, ...]] = {
    "peak_bytes": ("peak_ns", "reserved_at_peak_bytes"),
    "most_reserved_bytes": (),
}


@dataclass(frozen=True, eq=False)
class MemoryCurve:
    """Memory of one GPU over time, in bins of equal width.

    Attributes:
        start_ns: Where the first bin begins, on the profile's clock.
        bin_ns: Width of a bin.
        least_bytes: Least memory that was allocated in each bin: int64 [n_bins].
        most_bytes: Most of it: int64 [n_bins].
        reserved_bytes: Most memory that the allocator had taken from CUDA: int64 [n_bins].
    """

    start_ns: int
    bin_ns: int
    least_bytes: Int64Array
    most_bytes: Int64Array
    reserved_bytes: Int64Array


@dataclass(frozen=True, eq=False)
class DeviceMemory:
    """The allocator of one GPU; or what was taken from CUDA beside it, of which nothing is reserved.

    Attributes:
        ordinal: As the program counts its GPUs.
        peak_bytes: Most memory that was allocated at once, as `torch.cuda.max_memory_allocated` counts.
        peak_ns: When that was, on the profile's clock.
        reserved_at_peak_bytes: What the allocator had taken from CUDA then.
        most_reserved_bytes: The most that it had taken.
        allocations: Blocks that were handed out.
        reservations: How often the allocator took more memory from CUDA, which waits for the GPU.
        unknown_bytes: Allocated before the recording and still held at its end.
        curve: Over time.
    """

    ordinal: int
    peak_bytes: int
    peak_ns: int
    reserved_at_peak_bytes: int
    most_reserved_bytes: int
    allocations: int
    reservations: int
    unknown_bytes: int
    curve: MemoryCurve

    @property
    def unused_share(self) -> float:
        """Share of the most reserved memory that no block was in at the peak: fragments, or kept for other sizes."""
        return 1 - min(self.peak_bytes / self.most_reserved_bytes, 1.0) if self.most_reserved_bytes else 0.0


@dataclass(frozen=True)
class GpuMemory:
    """All that was followed.

    Attributes:
        reason: Why nothing was; empty: it was, or PyTorch used no GPU.
        devices: By ascending ordinal.
    """

    reason: str
    devices: tuple[DeviceMemory, ...]


@dataclass(frozen=True)
class JaxMemory:
    """What JAX's allocator said of one GPU when the recording ended.

    Attributes:
        ordinal: As the program counts its GPUs.
        peak_bytes: Most memory that arrays and programs took at once.
        limit_bytes: What the allocator may take, most of it from the start.
        largest_bytes: Largest block.
        allocations: Blocks that were handed out.
    """

    ordinal: int
    peak_bytes: int
    limit_bytes: int
    largest_bytes: int
    allocations: int


@dataclass(frozen=True)
class JaxArrays:
    """The snapshot of JAX's arrays that has the most memory in use, over all GPUs of the process.

    Attributes:
        held_bytes: In arrays, whose call paths are known.
        in_use_bytes: Just before it; programs that ran had the rest.
        peak_bytes: Most memory that was in use on each GPU, added up.
        reason: Why there is none; empty: there is.
    """

    held_bytes: int
    in_use_bytes: int
    peak_bytes: int
    reason: str


@dataclass(frozen=True)
class FreeMemory:
    """What no block was in of the memory that PyTorch's allocator had taken, when the recording ended.

    Attributes:
        ordinal: As the program counts its GPUs.
        segments: How many pieces of memory the allocator had taken from CUDA.
        reserved_bytes: All of them.
        largest_bytes: Largest piece that is free: a larger block needs more memory from CUDA.
        by_size: Pieces that are free, of each size its lower end in bytes, a power of two; how many; and their bytes.
    """

    ordinal: int
    segments: int
    reserved_bytes: int
    largest_bytes: int
    by_size: tuple[tuple[int, int, int], ...]

    @property
    def free_bytes(self) -> int:
        """In all pieces that are free."""
        return sum(size for _, _, size in self.by_size)

    @property
    def pieces(self) -> int:
        """How many there are."""
        return sum(count for _, count, _ in self.by_size)


def free_memory_of(meta: Mapping[str, Any]) -> list[FreeMemory]:
    """By ascending ordinal; none: PyTorch used no GPU, or memory was not followed."""
    return [
        FreeMemory(
            ordinal,
            segments=table.count("segments"),
            reserved_bytes=table.count("reserved_bytes"),
            largest_bytes=table.count("largest_free_bytes"),
            by_size=tuple(
                (size, each.count("count"), each.count("bytes")) for size, each in table.table("free").numbered()
            ),
        )
        for ordinal, table in Facts(meta).table("torch_segments").numbered()
    ]


def jax_arrays_of(meta: Mapping[str, Any]) -> JaxArrays | None:
    """None: no snapshot was taken."""
    told = Facts(meta).table(JAX_ARRAYS)
    peak_bytes = sum(each.peak_bytes for each in jax_memory_of(meta))
    counts = (told.count("held_bytes"), told.count("in_use_bytes"))
    return JaxArrays(*counts, peak_bytes, told.text("reason")) if len(told) else None


def jax_memory_of(meta: Mapping[str, Any]) -> list[JaxMemory]:
    """By ascending ordinal; none: JAX used no GPU, or memory was not followed."""
    devices = Facts(meta).table("jax_memory").numbered()
    names = ("peak_bytes_in_use", "bytes_limit", "largest_alloc_size", "num_allocs")
    return [JaxMemory(ordinal, *(table.count(name) for name in names)) for ordinal, table in devices]


def gpu_memory_of(meta: Mapping[str, Any], table: str = PEAKS[AT_PEAK]) -> GpuMemory | None:
    """What `Profile.meta` tells in a table of `PEAKS`; None: memory was not followed."""
    facts = Facts(meta)
    if not facts.is_table(table):
        return None
    told = facts.table(table)
    return GpuMemory(told.text("reason"), tuple(_device(*device) for device in told.table("devices").numbered()))


def united_memory(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """META's table of memory of two consecutive phases of one session, as one; the curve is that of the later phase."""
    devices = [Facts(phase).table("devices").values() for phase in (one, other)]
    both = {name: _one_device(*(Facts(table.get(name)) for table in devices)) for name in {**devices[0], **devices[1]}}
    return {**one, **other, "devices": both}


def _one_device(one: Facts, other: Facts) -> dict[str, Any]:
    together = {**one.values(), **other.values()}
    for most, fields in _OF_EXTREMES.items():
        higher = one if one.count(most) > other.count(most) else other
        together.update({name: higher.count(name) for name in (most, *fields)})
    for name in ("allocations", "frees", "reservations"):
        together[name] = one.count(name) + other.count(name)
    return together


def _device(ordinal: int, table: Facts) -> DeviceMemory:
    counts = (
        "peak_bytes",
        "peak_ns",
        "reserved_at_peak_bytes",
        "most_reserved_bytes",
        "allocations",
        "reservations",
        "unknown_bytes",
    )
    return DeviceMemory(ordinal, **{name: table.count(name) for name in counts}, curve=_curve(table.table("curve")))


def _curve(table: Facts) -> MemoryCurve:
    columns = [_column(table, name) for name in ("least_bytes", "most_bytes", "reserved_bytes")]
    n_bins = min(map(len, columns))
    least, most, reserved = (column[:n_bins] for column in columns)
    return MemoryCurve(table.count("start_ns"), max(table.count("bin_ns"), 1), least, most, reserved)


def _column(table: Facts, name: str) -> Int64Array:
    """The numbers of a list; none where the file has anything else."""
    values = table.values().get(name)
    known = isinstance(values, list) and all(type(value) is int and 0 <= value < 1 << 62 for value in values)
    return np.array(values if known else [], np.int64)
