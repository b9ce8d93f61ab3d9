"""Where kernels stand below the roofs of their devices.

With the arithmetic intensity I = flops / bytes, a kernel can reach min(peak flops, I * peak bytes): below the intensity
of the device itself its roof is memory, above it is arithmetic. Its utilisation is what it reached of that.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from bragg.analyze.work import Devices, OwnWork, bound_of, devices_of, own_work, roof_parts_s
from bragg.errors import UsageError
from bragg.model import FrameKind, Profile
from bragg.model.table import FloatArray, Int64Array

_COUNTED = "counters tell no flops"


@dataclass(frozen=True)
class Roof:
    """The limits of one device.

    Attributes:
        device: Its name.
        bytes_per_s: Memory bandwidth; None when unknown.
        flops_per_s: By width in bits; empty when unknown.
        source: Where the rates are from.
        missing: What is unknown and why; empty when all is known.
    """

    device: str
    bytes_per_s: float | None
    flops_per_s: Mapping[int, float]
    source: str
    missing: str


@dataclass(frozen=True)
class RooflinePoint:
    """One kernel, or one scope that was given flops or bytes, added up over all call paths.

    Attributes:
        name: Of the kernel or scope.
        roof: Row of the roofline's roofs; None when its device is unknown or several.
        time_ns: GPU time.
        flops: Of all widths.
        bytes: To and from memory.
        compute_ns: Time that its flops take at least, or that tensor cores worked; None when no peak is known, or
            bytes alone were counted.
        memory_ns: Time that its bytes take at least, or a cache needs where that is longer; None when no bandwidth is
            known.
        absent: Why it has no place in the chart; empty when it has one.
        caches_ns: By cache that was counted, time that it needs at least.
        is_counted: Whether counters tell these times, and flops do not.
        is_complete: Whether counters tell of DRAM, caches and pipelines.
    """

    name: str
    roof: int | None
    time_ns: float
    flops: float
    bytes: float
    compute_ns: float | None
    memory_ns: float | None
    absent: str
    caches_ns: Mapping[str, float] = field(default_factory=dict)
    is_counted: bool = False
    is_complete: bool = False

    @property
    def intensity(self) -> float | None:
        """Flops per byte; None without bytes."""
        return self.flops / self.bytes if self.bytes else None

    @property
    def flops_per_s(self) -> float | None:
        """What it reached; None without GPU time."""
        return self.flops / self.time_ns * 1e9 if self.time_ns else None

    @property
    def bytes_per_s(self) -> float | None:
        """What it reached; None without GPU time."""
        return self.bytes / self.time_ns * 1e9 if self.time_ns else None

    @property
    def util(self) -> float | None:
        """Share of the roof that it reached; its reciprocal is how much faster it could be. None without a roof."""
        if self.memory_ns is None or (self.compute_ns is None and self.bound is None) or not self.time_ns:
            return None
        return max(self.compute_ns or 0.0, self.memory_ns) / self.time_ns

    @property
    def bound(self) -> str | None:
        """The roof above it: `compute` or `memory`; None without a roof, or where counters do not tell which."""
        return bound_of(self.compute_ns, self.memory_ns, self.time_ns, is_counted=self.is_counted)

    @property
    def is_bound_by_latency(self) -> bool:
        """Whether counters tell of all units, and none is as busy as what bounds a kernel."""
        return self.is_counted and self.is_complete and self.bound is None

    @property
    def bounding_cache(self) -> str:
        """The cache that is the memory that bounds it; empty: none."""
        needed_ns = self.memory_ns if self.bound == "memory" else None
        same = (name for name, ns in self.caches_ns.items() if needed_ns and math.isclose(ns, needed_ns, rel_tol=1e-6))
        return next(same, "")

    def to_json(self) -> dict[str, Any]:
        """The facts of a point and its computed values, as JSON values."""
        return {
            **asdict(self),
            "intensity": self.intensity,
            "flops_per_s": self.flops_per_s,
            "bytes_per_s": self.bytes_per_s,
            "util": self.util,
            "bound": self.bound,
            "bounding_cache": self.bounding_cache,
            "is_bound_by_latency": self.is_bound_by_latency,
        }


@dataclass(frozen=True)
class Roofline:
    """All points, those with most GPU time first, and the roofs over them.

    Attributes:
        roofs: One for each kind of device.
        points: See `RooflinePoint`.
        time_ns: GPU time of the whole profile.
        widths: Widths in bits of the flops that were counted, ascending.
        is_measured: Whether counters tell bytes, flops and tensor cores, else the program states flops and bytes.
        counts_bytes_alone: Whether counters tell bytes and tensor cores were not counted.
        caches: Those of which counters tell how busy they were.
        counts_pipes: Whether counters tell how busy pipelines were.
    """

    roofs: tuple[Roof, ...]
    points: tuple[RooflinePoint, ...]
    time_ns: float
    widths: tuple[int, ...]
    is_measured: bool = False
    counts_bytes_alone: bool = False
    caches: tuple[str, ...] = ()
    counts_pipes: bool = False


def roofline(profile: Profile) -> Roofline:
    """The points and roofs of a profile: one point for each kernel or scope that has flops or bytes of its own.

    Raises:
        UsageError: The profile has no GPU time, or nothing in it has flops or bytes.
    """
    if "gpu_time" not in profile.metrics:
        raise UsageError("no GPU time was recorded, so there is no roofline", hint="What can be recorded: bragg doctor")
    work, devices = own_work(profile), devices_of(profile)
    nodes = np.flatnonzero((work.all_flops != 0) | (work.bytes != 0))
    if not len(nodes):
        raise UsageError(
            "nothing in this profile has flops or bytes",
            hint="bragg run --counters measures; or give flops and bytes to kernels by launch_metadata of triton.jit",
        )
    points = sorted(_points(profile, work, devices, nodes), key=lambda point: -point.time_ns)
    return Roofline(
        roofs=tuple(
            Roof(peak.device, peak.bytes_per_s, dict(peak.flops_per_s), peak.source, peak.missing)
            for peak in devices.peaks
        ),
        points=tuple(points),
        time_ns=float(profile.total("gpu_time")),
        widths=tuple(sorted(width for width, flops in work.flops.items() if flops.any())),
        is_measured=work.is_measured,
        counts_bytes_alone=work.is_of_bytes_alone,
        caches=tuple(work.caches_ns),
        counts_pipes="pipe_busy_time" in profile.metrics,
    )


def _points(profile: Profile, work: OwnWork, devices: Devices, nodes: Int64Array) -> Iterator[RooflinePoint]:
    """One point for each name and device."""
    tree = profile.tree
    time_ns = np.where(tree.kind == FrameKind.KERNEL, profile.own("gpu_time"), profile.inclusive("gpu_time"))
    compute_s, memory_s = roof_parts_s(work, devices)
    if work.is_of_bytes_alone:
        compute_s = np.full(len(tree), np.nan)
    groups: dict[tuple[str, int], list[int]] = {}
    for node in nodes.tolist():
        groups.setdefault((tree.frames.name[tree.frame[node]], int(devices.of_node[node])), []).append(node)
    for (name, row), members in groups.items():
        compute_ns, memory_ns = _sum_ns(compute_s[members]), _sum_ns(memory_s[members])
        time, flops, size = (float(column[members].sum()) for column in (time_ns, work.all_flops, work.bytes))
        is_counted = work.is_measured and not flops
        yield RooflinePoint(
            name=name,
            roof=row if row >= 0 else None,
            time_ns=time,
            flops=flops,
            bytes=size,
            compute_ns=compute_ns,
            memory_ns=memory_ns,
            caches_ns={cache: float(busy_ns[members].sum()) for cache, busy_ns in work.caches_ns.items()},
            is_counted=is_counted,
            is_complete=work.is_complete is not None and bool(work.is_complete[members].all()),
            absent=_COUNTED if is_counted else _absent(time, flops, size, devices, row),
        )


def _sum_ns(seconds: FloatArray) -> float | None:
    total = float(seconds.sum())
    return None if np.isnan(total) else total * 1e9


def _absent(time_ns: float, flops: float, size: float, devices: Devices, row: int) -> str:
    """Why a point has no place in a chart of flop/s over flop/byte."""
    if time_ns <= 0:
        return "no GPU time"
    if flops <= 0:
        return "no flops"
    if size <= 0:
        return "no bytes"
    if row < 0:
        return "its device is unknown" if row == -1 else "it ran on devices with different peaks"
    return devices.peaks[row].missing
