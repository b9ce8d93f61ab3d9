"""What the kernels of a profile had to do: flops and bytes by node, and the time that the hardware needs for them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from weakref import WeakKeyDictionary

import numpy as np

from bragg.analyze.counted_flops import counted_flops, has_counted_flops
from bragg.analyze.specs import WIDTHS, Peak, find
from bragg.model import Metric, MetricKind, Profile
from bragg.model.meta.run import Run
from bragg.model.table import BoolArray, FloatArray, Int64Array

ROOF_TIME = "roof_time"
NO_ROOF = "no_roof"
MEASURED_BYTES = "dram_bytes"
STATED_BYTES = "bytes"
BOUND_SHARE = 0.6
"""Of a kernel's time, from which a part that counters tell is what bounds it, as in Nsight Compute."""
_TENSOR, _PIPE = "tensor_active", "pipe_busy"
_CACHES = {"L1": "l1_busy", "L2": "l2_busy"}

# Flops of which only the sum is known are held against the roof of the numbers that most kernels multiply.
_USUAL_WIDTH = 16
_SEVERAL = "its kernels ran on devices with different peaks; give flops and bytes to the kernels"
_NOWHERE = "no kernel below says which device it is about"
_NO_BYTES = "nothing counted the bytes of DRAM"
_UNUSABLE = "flops or bytes are negative or not finite where they were counted"


@dataclass(frozen=True, eq=False)
class OwnWork:
    """Own flops and bytes of each node.

    Attributes:
        flops: By width in bits, float64 [n_nodes].
        bytes: float64 [n_nodes].
        tensor_ns: Time in which tensor cores were at work, or the busiest pipeline would have needed at its peak, if
            that is longer: float64 [n_nodes]; 0 where flops tell what they did.
        caches_ns: By cache, time that it would have needed at its peak: float64 [n_nodes]; those that were counted.
        is_complete: Whether DRAM, caches and pipelines were all counted: bool [n_nodes].
        is_measured: Whether counters tell bytes, flops and tensor cores, else the program does.
        is_of_bytes_alone: Whether they tell the bytes, and nothing tells the arithmetic.
        has_bytes: Whether anything tells the bytes.
    """

    flops: Mapping[int, FloatArray]
    bytes: FloatArray
    tensor_ns: FloatArray
    is_measured: bool
    caches_ns: Mapping[str, FloatArray] = field(default_factory=dict)
    is_complete: BoolArray | None = None
    is_of_bytes_alone: bool = False
    has_bytes: bool = True

    @property
    def all_flops(self) -> FloatArray:
        """Of all widths: [n_nodes]."""
        return np.sum(list(self.flops.values()), axis=0)  # type: ignore[no-any-return]


def own_work(profile: Profile) -> OwnWork:
    """The metrics `flops`, `flops4` to `flops64` and `bytes`; one that is missing is zero.

    `flops` is the sum over all widths: what exceeds the given widths counts as 16 bits. Where the program states
    neither flops nor bytes, counters tell: of DRAM, of instructions, and the time of tensor cores.
    """
    # Each derived metric asks for it, and listings of counted kernels take long to read.
    known = _KNOWN.get(profile)
    if known is None:
        known = _KNOWN[profile] = _stated_work(profile) if _is_stated(profile) else _measured_work(profile)
    return known


def work_by_counters(profile: Profile) -> OwnWork:
    """The same, but of what is both stated and counted, what was counted."""
    return _measured_work(profile) if MEASURED_BYTES in profile.metrics else own_work(profile)


_KNOWN: WeakKeyDictionary[Profile, OwnWork] = WeakKeyDictionary()


def _stated_work(profile: Profile) -> OwnWork:
    by_width = {width: _own(profile, f"flops{width}") for width in WIDTHS}
    total = _own(profile, "flops")
    with np.errstate(invalid="ignore"):  # infinite ones
        rest = np.maximum(total - np.sum(list(by_width.values()), axis=0), 0)
    by_width[_USUAL_WIDTH] = by_width[_USUAL_WIDTH] + np.where(total > 0, rest, total)
    return OwnWork(by_width, _own(profile, STATED_BYTES), np.zeros(len(profile.tree)), is_measured=False)


def _measured_work(profile: Profile) -> OwnWork:
    flops = counted_flops(profile)
    all_flops = np.sum(list(flops.values()), axis=0)
    worked_ns = np.maximum(_busy_ns(profile, _TENSOR), _busy_ns(profile, _PIPE))
    counted = [_own(profile, f"{group}_counted_time") > 0 for group in ("dram", _PIPE, *_CACHES.values())]
    return OwnWork(
        flops,
        of_all_launches(profile, MEASURED_BYTES, "dram"),
        np.where(all_flops > 0, 0, worked_ns),
        is_measured=True,
        caches_ns={
            name: _busy_ns(profile, group) for name, group in _CACHES.items() if f"{group}_time" in profile.metrics
        },
        is_complete=np.logical_and.reduce(counted),
        is_of_bytes_alone=not {f"{_TENSOR}_time", f"{_PIPE}_time"} & profile.metrics.keys() and not all_flops.any(),
        has_bytes=MEASURED_BYTES in profile.metrics,
    )


def _busy_ns(profile: Profile, unit: str) -> FloatArray:
    return of_all_launches(profile, f"{unit}_time", unit)


def has_flops(profile: Profile) -> bool:
    """Whether the program states flops of any kind, or they follow from counted instructions."""
    return _states_flops(profile) or (has_counted_flops(profile) and not _is_stated(profile))


def has_work(profile: Profile) -> bool:
    """Whether flops or bytes were recorded."""
    return _is_stated(profile) or MEASURED_BYTES in profile.metrics or has_counted_flops(profile)


def _is_stated(profile: Profile) -> bool:
    return _states_flops(profile) or STATED_BYTES in profile.metrics


def _states_flops(profile: Profile) -> bool:
    return any(f"flops{width}" in profile.metrics for width in ("", *WIDTHS))


def _own(profile: Profile, name: str) -> FloatArray:
    metric = profile.metrics.get(name)
    if metric is None or metric.kind is MetricKind.PROPERTY:
        return np.zeros(len(profile.tree))
    return metric.own.astype(np.float64)


def of_all_launches(profile: Profile, name: str, group: str) -> FloatArray:
    """A counter's own values, taken for all of a node's GPU time where some of its launches were counted: [n_nodes]."""
    own, time_ns = _own(profile, name), _own(profile, "gpu_time")
    counted_ns = _own(profile, f"{group}_counted_time")
    return own * np.divide(time_ns, counted_ns, out=np.ones(len(own)), where=(counted_ns > 0) & (time_ns > 0))


@dataclass(frozen=True, eq=False)
class Devices:
    """Which peak holds at which node.

    Attributes:
        peaks: Of the devices that kernels ran on, each once.
        of_node: int64 [n_nodes], row of `peaks`; -1 where no kernel at or below tells, -2 where kernels disagree.
    """

    peaks: list[Peak]
    of_node: Int64Array


def devices_of(profile: Profile) -> Devices:
    """The device of each kernel; elsewhere that of all kernels below."""
    tree = profile.tree
    ordinal = tree.frames.device[tree.frame]
    row_of_key: dict[tuple[object, ...], int] = {}
    peaks: list[Peak] = []
    own = np.full(len(tree), -1, np.int64)
    for device in np.unique(ordinal[ordinal >= 0]).tolist():
        peak = _recorded_peak(profile.run, device)
        row = row_of_key.setdefault(peak.key(), len(peaks))
        peaks += [peak] if row == len(peaks) else []
        own[ordinal == device] = row
    if len(peaks) == 1:
        return Devices(peaks, np.zeros(len(tree), np.int64))
    return Devices(peaks, np.where(own >= 0, own, _common_below(profile, own)))


def _common_below(profile: Profile, own: Int64Array) -> Int64Array:
    least = np.where(own < 0, np.iinfo(np.int64).max, own)
    most = own.copy()
    for level in reversed(profile.tree.levels[1:]):
        np.minimum.at(least, profile.tree.parent[level], least[level])
        np.maximum.at(most, profile.tree.parent[level], most[level])
    return np.where(most < 0, -1, np.where(least == most, most, -2))


def _recorded_peak(run: Run, ordinal: int) -> Peak:
    """The peak of a device of the run, or of all merged runs if they agree."""
    peaks = [find(record) for record in run.records_of_device(ordinal)]
    label = f"device {ordinal}"
    if not peaks:
        return Peak(label, {}, None, "", f"{label} was not recorded")
    if len({peak.key() for peak in peaks}) > 1:
        return Peak(label, {}, None, "", f"{label} was not the same one in all recordings")
    return peaks[0]


def roof_parts_s(work: OwnWork, devices: Devices) -> tuple[FloatArray, FloatArray]:
    """Time that arithmetic and memory need at least, each alone: float64 [n_nodes], s; NaN where no peak is known.

    Measured arithmetic is that of tensor cores or of all pipelines, where instructions were not counted. Memory is
    DRAM, or a cache where that was counted and needs longer.
    """
    compute = np.where(work.all_flops > 0, np.nan, work.tensor_ns / 1e9)
    memory = np.where(work.bytes > 0, np.nan, 0.0) if work.has_bytes else np.where(compute != 0, np.nan, 0.0)
    for row, peak in enumerate(devices.peaks):
        here = devices.of_node == row
        if peak.flops_per_s:
            seconds = np.sum([work.flops[width][here] / peak.flops_per_s[width] for width in WIDTHS], axis=0)
            compute[here] = seconds + work.tensor_ns[here] / 1e9
        if peak.bytes_per_s and work.has_bytes:
            memory[here] = work.bytes[here] / peak.bytes_per_s
    for busy_ns in work.caches_ns.values():
        memory = np.maximum(memory, busy_ns / 1e9)
    unusable = _is_unusable(work)
    compute[unusable] = memory[unusable] = np.nan
    return compute, memory


def bound_of(compute_s: float | None, memory_s: float | None, time_s: float, *, is_counted: bool) -> str | None:
    """The roof above a kernel: `compute` or `memory`; None: not known.

    Args:
        compute_s: Time that arithmetic needs at least; None: not known.
        memory_s: The same of memory.
        time_s: GPU time.
        is_counted: Counters tell both as shares of the time. They do not tell everything that may bound a kernel, so
            less than `BOUND_SHARE` says nothing.
    """
    if memory_s is None or not max(compute_s or 0, memory_s):
        return None
    if (is_counted or compute_s is None) and max(compute_s or 0, memory_s) < BOUND_SHARE * time_s:
        return None
    return "compute" if (compute_s or 0) > memory_s else "memory"


def with_roof_time(profile: Profile) -> Profile:
    """The profile with the metrics `roof_time` and `no_roof`, which add up along call paths as times do.

    `roof_time` is the time that the work of a node takes at least: the longer of arithmetic at the peak of its width
    and of memory traffic at full bandwidth. Kernels run one after another, so a parent's is the sum of its children's.
    `no_roof` counts nodes with flops or bytes whose device has no known peak. Without flops and bytes nothing is added.
    """
    if ROOF_TIME in profile.metrics or not has_work(profile):
        return profile
    work, devices = own_work(profile), devices_of(profile)
    seconds = np.maximum(*roof_parts_s(work, devices))
    added = {
        ROOF_TIME: Metric(ROOF_TIME, "ns", MetricKind.INCLUSIVE, np.nan_to_num(seconds) * 1e9),
        NO_ROOF: Metric(NO_ROOF, "1", MetricKind.INCLUSIVE, np.isnan(seconds).astype(np.int64)),
    }
    return replace(profile, metrics={**profile.metrics, **added})


def why_no_roof(profile: Profile) -> str:
    """Why some work has no roof, one line; empty when all has one."""
    work, devices = own_work(profile), devices_of(profile)
    has_work = (work.all_flops > 0) | (work.bytes > 0)
    reasons = [peak.missing for peak in devices.peaks if peak.missing]
    reasons += [] if work.has_bytes else [_NO_BYTES]
    for row, reason in ((-2, _SEVERAL), (-1, _NOWHERE)):
        reasons += [reason] if (has_work & (devices.of_node == row)).any() else []
    return "; ".join([*reasons, *([_UNUSABLE] if _is_unusable(work).any() else [])])


def _is_unusable(work: OwnWork) -> BoolArray:
    columns = np.stack([*work.flops.values(), work.bytes])
    unusable: BoolArray = np.any((columns < 0) | ~np.isfinite(columns), axis=0)
    return unusable
