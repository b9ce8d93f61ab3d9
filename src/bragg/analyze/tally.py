"""Tally: how often each thing ran and how long it took, in all and at once, over all processes and ranks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np

from bragg.analyze.ranks.bandwidth import bus_factor
from bragg.model import FrameKind, Profile, TrackKind
from bragg.model.durations import DurationTable
from bragg.model.meta.nccl import NcclCall, nccl_of
from bragg.model.table import BoolArray, FloatArray, Int64Array
from bragg.model.transform import with_descendants

_QUANTILES = (0.5, 0.95, 0.99)
_N_UNEQUAL = 4  # notes


@dataclass(frozen=True)
class _Kind:
    """What a section is made of.

    Attributes:
        title: Of the section.
        kinds: Of frames.
        value: The metric that is added up.
        count: The metric that counts calls.
        is_device: Values are those of the node alone, with the shortest and the longest of them.
        why_empty: What to record, where a profile has none.
    """

    title: str
    kinds: tuple[FrameKind, ...]
    value: str
    count: str
    is_device: bool = False
    why_empty: str = ""


_API_OFF = "calls of the GPU's API were not recorded: bragg run --gpu-api"
_SECTIONS = (
    _Kind("GPU API", (FrameKind.GPU_API,), "host_time", "host_count", why_empty=_API_OFF),
    _Kind("operators", (FrameKind.OPERATOR,), "host_time", "host_count"),
    _Kind("scopes", (FrameKind.SCOPE,), "host_time", "host_count"),
    _Kind("device", (FrameKind.KERNEL, FrameKind.MEMORY), "gpu_time", "gpu_count", is_device=True),
    _Kind("memory traffic", (FrameKind.MEMORY,), "gpu_bytes", "gpu_count"),
)


@dataclass(frozen=True)
class TallyRow:
    """One thing that ran; what the profile does not tell is None.

    Attributes:
        name: As the program gave it.
        is_symbol: The name is that of compiled code.
        total: Time, or bytes, of all calls; of host code with what it called.
        share: Of the section's total; of operators and scopes, which call each other, of the host's time.
        calls: How many.
        average: Of a call.
        least: The shortest call.
        most: The longest.
        quantiles: The 50th, 95th and 99th percentile, within 3.2 %.
        imbalance: Largest total of a rank / mean of the ranks - 1.
        worst_rank: The rank with the largest total.
        bus_bytes_per_s: Bus bandwidth of the shortest call of a collective, that of the rank which waited least; None:
            it is no collective, or its bytes or times are not known.
    """

    name: str
    is_symbol: bool
    total: float
    share: float
    calls: int
    average: float | None
    least: float | None
    most: float | None
    quantiles: tuple[float, float, float] | None
    imbalance: float | None
    worst_rank: int | None
    bus_bytes_per_s: float | None = None


@dataclass(frozen=True)
class Section:
    """The rows of one kind, the largest total first.

    Attributes:
        title: What they are.
        unit: Of totals: `ns` or `B`.
        rows: At least one.
    """

    title: str
    unit: str
    rows: tuple[TallyRow, ...]


@dataclass(frozen=True)
class Tally:
    """All sections, and what they are of.

    Attributes:
        n_hosts: Machines.
        n_processes: Processes.
        n_threads: Threads with a track; None: no timeline was kept.
        n_devices: GPUs that worked.
        backends: What measured.
        sections: Those with rows.
        notes: What was not recorded.
    """

    n_hosts: int
    n_processes: int
    n_threads: int | None
    n_devices: int
    backends: tuple[str, ...]
    sections: tuple[Section, ...]
    notes: tuple[str, ...]


def tally_of(profiles: Sequence[Profile], ranks: Sequence[int] | None = None) -> Tally:
    """The tally of a run.

    Args:
        profiles: One of each process or rank.
        ranks: Number of each, to compare them; None: they are not compared.
    """
    hosts = {run.host for profile in profiles for run in profile.run.recordings}
    sections = [_section(kind, profiles, ranks) for kind in _SECTIONS]
    has_device = any(kind.is_device and found for kind, found in zip(_SECTIONS, sections, strict=True))
    notes = [kind.why_empty for kind, found in zip(_SECTIONS, sections, strict=True) if has_device and not found]
    worked = [
        (profile.run.host, int(device))
        for profile in profiles
        for device in np.unique(profile.tree.frames.device[profile.tree.frame])
        if device >= 0
    ]
    has_tracks = any(len(profile.tracks) for profile in profiles)
    threads = sum(int((profile.tracks.kind == TrackKind.HOST_THREAD).sum()) for profile in profiles)
    return Tally(
        n_hosts=len(hosts),
        n_processes=sum(len(run.workers) + 1 for profile in profiles for run in profile.run.recordings),
        n_threads=threads if has_tracks else None,
        n_devices=_n_devices(profiles, worked),
        backends=tuple(dict.fromkeys(profile.run.backend for profile in profiles)),
        sections=tuple(filter(None, [*sections, _of_nccl(profiles, ranks)])),
        notes=tuple(filter(None, [*notes, *islice(_unequal_ranks(profiles, ranks), _N_UNEQUAL)])),
    )


def _n_devices(profiles: Sequence[Profile], worked: Sequence[tuple[str, int]]) -> int:
    """GPUs by UUID where all ranks tell it: two ranks may each call their own GPU 0."""
    uuids = [tuple(profile.run.place.texts("gpus")) for profile in profiles]
    return len({uuid for each in uuids for uuid in each}) if all(uuids) else len(set(worked))


class _Sum:
    """What is known of one name, over the profiles so far."""

    def __init__(self, n_profiles: int) -> None:
        self.totals = np.zeros(n_profiles)
        self.calls = 0
        self.timed = 0  # those that the average is of
        self.least = np.inf
        self.most = -np.inf
        self.buckets: dict[int, int] = {}


def _section(kind: _Kind, profiles: Sequence[Profile], ranks: Sequence[int] | None) -> Section | None:
    sums: dict[str, _Sum] = {}
    for number, profile in enumerate(profiles):
        if kind.value in profile.metrics:
            _add(sums, kind, profile, number, len(profiles))
    kept = {name: found for name, found in sums.items() if found.totals.any() or found.calls}
    if not kept:
        return None
    is_nested = kind.value == "host_time" and kind.kinds != (FrameKind.GPU_API,)
    whole = sum(profile.total("host_time") for profile in profiles if "host_time" in profile.metrics)
    total = whole if is_nested else sum(found.totals.sum() for found in kept.values())
    rows = [_row(name, found, total, ranks, is_symbol=kind.is_device) for name, found in kept.items()]
    rows.sort(key=lambda row: -row.total)
    return Section(kind.title, "B" if kind.value == "gpu_bytes" else "ns", tuple(rows))


def _add(sums: dict[str, _Sum], kind: _Kind, profile: Profile, number: int, n_profiles: int) -> None:
    tree = profile.tree
    is_kind = np.isin(tree.kind, kind.kinds)
    nodes = np.flatnonzero(is_kind)
    values = profile.own(kind.value) if kind.value != "host_time" else _of_outermost(profile, nodes)
    calls = profile.own(kind.count) if kind.count in profile.metrics else np.zeros(len(tree), np.int64)
    has_extremes = kind.is_device and "gpu_time_min" in profile.metrics and "gpu_time_max" in profile.metrics
    least = profile.own("gpu_time_min") if has_extremes else None
    most = profile.own("gpu_time_max") if has_extremes else None
    for node in nodes.tolist():
        name = tree.frames.name[tree.frame[node]]
        found = sums.setdefault(name, _Sum(n_profiles))
        found.totals[number] += values[node]
        found.calls += int(calls[node])
        found.timed = found.calls
        if least is not None and most is not None:
            found.least = min(found.least, float(np.nan_to_num(least[node], nan=np.inf)))
            found.most = max(found.most, float(np.nan_to_num(most[node], nan=-np.inf)))
    if kind.is_device:
        durations = profile.durations
        for frame, bucket, count in zip(
            durations.frame.tolist(), durations.bucket.tolist(), durations.count.tolist(), strict=True
        ):
            if (kernel := sums.get(tree.frames.name[frame])) is not None:
                kernel.buckets[bucket] = kernel.buckets.get(bucket, 0) + count


def _of_outermost(profile: Profile, nodes: Int64Array) -> FloatArray:
    """The host time of each node with what it called; 0 below another node of the same name, which has it already."""
    tree = profile.tree
    values = profile.inclusive("host_time").astype(np.float64)
    names: dict[str, list[int]] = {}
    for node in nodes.tolist():
        names.setdefault(tree.frames.name[tree.frame[node]], []).append(node)
    for same in names.values():
        if int(tree.depth[same].min()) != int(tree.depth[same].max()):
            mask: BoolArray = np.zeros(len(tree), np.bool_)
            mask[same] = True
            below = with_descendants(tree, mask)[tree.parent[same]]
            values[np.array(same)[below]] = 0
    return values


def _of_nccl(profiles: Sequence[Profile], ranks: Sequence[int] | None) -> Section | None:
    """Calls of NCCL by their own times on the GPU; averages are of those that have one."""
    sums: dict[str, _Sum] = {}
    kinds: dict[str, NcclCall] = {}
    for number, profile in enumerate(profiles):
        told = nccl_of(profile.meta)
        for call in told.calls if told is not None else ():
            kinds[call.name] = call
            found = sums.setdefault(call.name, _Sum(len(profiles)))
            found.totals[number] += call.gpu_ns
            found.calls += call.calls
            found.timed += call.timed
            if call.timed:
                found.least = min(found.least, call.least_ns)
                found.most = max(found.most, call.most_ns)
    total = float(sum(found.totals.sum() for found in sums.values()))
    rows = [
        replace(_row(name, found, total, ranks, is_symbol=False), bus_bytes_per_s=_bus_of(kinds[name], found.least))
        for name, found in sums.items()
    ]
    return Section("NCCL", "ns", tuple(sorted(rows, key=lambda row: -row.total))) if rows else None


def _bus_of(call: NcclCall, least_ns: float) -> float | None:
    rate = call.size_bytes * bus_factor(call.operation, call.n_ranks) * 1e9
    return rate / least_ns if rate > 0 and 0 < least_ns < np.inf else None


def _unequal_ranks(profiles: Sequence[Profile], ranks: Sequence[int] | None) -> Iterator[str]:
    """Ranks of one communicator that made fewer calls of an operation than others, as before a hang."""
    counts: dict[tuple[str, str], dict[int, int]] = {}
    groups: dict[str, str] = {}
    for rank, profile in zip(ranks or (), profiles, strict=False):
        told = nccl_of(profile.meta)
        kinds: dict[tuple[str, str], list[NcclCall]] = {}
        for call in told.calls if told is not None else ():
            if call.peer is None:
                groups.setdefault(call.communicator, call.group)
                kinds.setdefault((call.communicator, call.operation), []).append(call)
        for kind, calls in kinds.items():
            counts.setdefault(kind, {})[rank] = _made(calls)
    for (communicator, operation), made in counts.items():
        least, most = min(made, key=made.__getitem__), max(made, key=made.__getitem__)
        if made[least] < made[most]:
            yield (
                f"rank {least} made {made[least]:,} {operation} calls of NCCL in group {groups[communicator]}, "
                f"rank {most} {made[most]:,}"
            )


def _made(calls: Sequence[NcclCall]) -> int:
    """How many calls of one operation a rank made, before its recording began, too, where NCCL numbers them."""
    last = [call.last_number for call in calls if call.last_number is not None]
    return max(last) + 1 if len(last) == len(calls) else sum(call.calls for call in calls)


def _row(name: str, found: _Sum, total: float, ranks: Sequence[int] | None, *, is_symbol: bool) -> TallyRow:
    own = float(found.totals.sum())
    mean = own / len(found.totals)
    is_compared = ranks is not None and len(ranks) > 1 and mean > 0
    return TallyRow(
        name=name,
        is_symbol=is_symbol,
        total=own,
        share=own / total if total else 0.0,
        calls=found.calls,
        average=own / found.timed if found.timed else None,
        least=found.least if np.isfinite(found.least) else None,
        most=found.most if np.isfinite(found.most) else None,
        quantiles=_quantiles(found),
        imbalance=float(found.totals.max()) / mean - 1 if is_compared else None,
        worst_rank=ranks[int(found.totals.argmax())] if is_compared and ranks else None,
    )


def _quantiles(found: _Sum) -> tuple[float, float, float] | None:
    """Percentiles of single launches; None where not all of them were kept."""
    if not found.calls or sum(found.buckets.values()) != found.calls:
        return None
    zeros = np.zeros(len(found.buckets), np.int64)
    counts = np.array(list(found.buckets.values()), np.int64)
    durations = DurationTable(zeros.astype(np.int32), np.array(list(found.buckets), np.int32), counts, zeros)
    p50, p95, p99 = (float(np.clip(durations.quantiles(q, 1)[0], found.least, found.most)) for q in _QUANTILES)
    return p50, p95, p99
