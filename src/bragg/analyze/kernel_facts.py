"""The table of kernels: what each took, reached, and how it was launched."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

import numpy as np

from bragg.analyze.occupancy import occupancy
from bragg.analyze.work import bound_of, devices_of, own_work, roof_parts_s
from bragg.model import FrameKind, Profile
from bragg.model.ids import FrameId
from bragg.model.kernels.names import base_name
from bragg.model.table import FloatArray, Int64Array


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
        static_shared_bytes: The part of `shared_bytes` that is fixed at compile time.
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
    static_shared_bytes: int = 0

    @property
    def dynamic_shared_bytes(self) -> int:
        """The part of the shared memory that is asked for at launch."""
        return self.shared_bytes - self.static_shared_bytes

    @property
    def blocks(self) -> int:
        """Of the grid."""
        x, y, z = self.grid
        return x * y * z


@dataclass(frozen=True)
class KernelFacts:
    """A kernel over all call paths; None: not known.

    Attributes:
        frame: Row of the frame table.
        base: Its name without the specialization.
        time_ns: GPU time.
        count: Launches.
        min_ns: The shortest launch.
        max_ns: The longest launch.
        flops: Of all widths.
        bytes: To and from memory.
        roof_ns: Time that its flops and bytes take at least; None: it has none, or its device has no known peaks.
        bound: The roof above it: `compute` or `memory`.
        configurations: How it was launched, the most frequent first.
    """

    frame: FrameId
    base: str
    time_ns: float
    count: int
    min_ns: float | None = None
    max_ns: float | None = None
    flops: float | None = None
    bytes: float | None = None
    roof_ns: float | None = None
    bound: str | None = None
    configurations: tuple[Configuration, ...] = ()


_KINDS = (FrameKind.KERNEL, FrameKind.MEMORY)


def kernel_facts(profile: Profile) -> list[KernelFacts]:
    """Every kernel, copy and set that took time, the one with most GPU time first."""
    if "gpu_time" not in profile.metrics:
        return []
    tree = profile.tree
    nodes = np.flatnonzero(np.isin(tree.kind, _KINDS))
    frame = tree.frame[nodes]
    sums = _Sums(profile, nodes, frame.astype(np.int64))
    time_ns, count = sums.of(profile.own("gpu_time")), sums.of(_own(profile, "gpu_count"))
    work = own_work(profile)
    flops, size = sums.of(work.all_flops), sums.of(work.bytes)
    compute_s, memory_s = roof_parts_s(work, devices_of(profile))
    roof_s, compute, memory = sums.of(np.maximum(compute_s, memory_s)), sums.of(compute_s), sums.of(memory_s)
    shortest = _extreme(profile, nodes, "gpu_time_min", np.fmin)
    longest = _extreme(profile, nodes, "gpu_time_max", np.fmax)
    configurations = configurations_of(profile)
    hottest = np.argsort(-time_ns, kind="stable")
    return [
        KernelFacts(
            frame=row,
            base=base_name(tree.frames.name[row]),
            time_ns=float(time_ns[row]),
            count=int(count[row]),
            min_ns=_known(shortest[row]),
            max_ns=_known(longest[row]),
            flops=_known(flops[row]) or None,
            bytes=_known(size[row]) or None,
            roof_ns=_known(roof_s[row] * 1e9) or None,
            bound=bound_of(
                _known(compute[row]),
                _known(memory[row]),
                time_ns[row] / 1e9,
                is_counted=work.is_measured and not flops[row],
            ),
            configurations=tuple(configurations.get(row, ())),
        )
        for row in hottest[time_ns[hottest] > 0].tolist()
    ]


class _Sums:
    """Adds up the finite values of kernels' nodes by frame."""

    def __init__(self, profile: Profile, nodes: Int64Array, frame: Int64Array) -> None:
        self._nodes, self._frame, self._n_frames = nodes, frame, len(profile.tree.frames)

    def of(self, own: FloatArray | Int64Array) -> FloatArray:
        values = own[self._nodes]
        added = np.bincount(self._frame, np.where(np.isfinite(values), values, 0), self._n_frames)
        return added.astype(np.float64)


def _own(profile: Profile, name: str) -> FloatArray:
    metric = profile.metrics.get(name)
    return np.zeros(len(profile.tree)) if metric is None else metric.own.astype(np.float64)


def _extreme(profile: Profile, nodes: Int64Array, name: str, choose: np.ufunc) -> FloatArray:
    extreme = np.full(len(profile.tree.frames), np.nan)
    if name in profile.metrics:
        choose.at(extreme, profile.tree.frame[nodes], profile.own(name)[nodes])
    return extreme


def configurations_of(profile: Profile) -> dict[int, list[Configuration]]:
    """By frame, the most frequent first."""
    found: dict[int, list[Configuration]] = defaultdict(list)
    table, stack_bytes = profile.kernels, _stack_bytes(profile)
    rows = list(zip(*(getattr(table, name).tolist() for name in table.columns()), strict=True))
    for values in sorted(rows, key=lambda row: -row[-1]):
        frame, registers, static_bytes, dynamic_bytes, local_bytes, *sizes, count = values
        grid, block, cluster = tuple(sizes[0:3]), tuple(sizes[3:6]), tuple(sizes[6:9])
        arch = _arch(profile, int(profile.tree.frames.device[frame]))
        shared_bytes = static_bytes + dynamic_bytes
        share, limit = occupancy(arch, int(np.prod(block)), registers, shared_bytes)
        found[frame].append(
            Configuration(
                count=count,
                grid=grid,
                block=block,
                cluster=cluster if any(cluster) else None,
                registers=registers,
                shared_bytes=shared_bytes,
                local_bytes_per_thread=max(local_bytes, stack_bytes.get(profile.tree.frames.name[frame], 0)),
                occupancy=share,
                occupancy_limit=limit,
                static_shared_bytes=static_bytes,
            )
        )
    return found


def _stack_bytes(profile: Profile) -> dict[str, int]:
    """What binaries say, by name of the kernel. CUPTI 13 tells 0 B of kernels that spill (H100)."""
    options = profile.run.kernel_options
    noted = profile.run.attributes.items() if len(options) else ()
    return {name: options.table(texts["code"]).count("stack_bytes") for name, texts in noted if "code" in texts}


def _arch(profile: Profile, ordinal: int) -> str:
    """Architecture of a device; empty when it was not recorded, or differs between merged runs."""
    found = {str(record.get("arch", "")) for record in profile.run.records_of_device(ordinal)}
    return found.pop() if len(found) == 1 else ""


def _known(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
