"""Power, clock and limits of GPUs while call paths ran on them, from samples of telemetry."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from bragg.model import CounterTable, Profile, TrackKind
from bragg.model.meta.telemetry import CLOCK_TRACK, LIMITS, METERED, POWER_TRACK, telemetry_of, track_of_reason
from bragg.model.table import BoolArray, FloatArray, Int64Array

_J_OF_W_NS, _CYCLES_OF_MHZ_NS = 1e-9, 1e-3
_GAP = 1.5  # times the usual interval: nothing was sampled in between
_LEAST_SAMPLES = 2


@dataclass(frozen=True, eq=False)
class _Samples:
    """Of one GPU: each stands for the time between `begin_ns` and `end_ns`; values are [n_samples] each."""

    begin_ns: Int64Array
    end_ns: Int64Array
    values: Mapping[str, FloatArray]

    @classmethod
    def of(cls, time_ns: Int64Array, time_name: str, values: Mapping[str, FloatArray]) -> _Samples | None:
        """Each since the one before; None: there are too few."""
        if len(time_ns) < _LEAST_SAMPLES:
            return None
        since = np.diff(time_ns, prepend=2 * time_ns[0] - time_ns[1])
        begin_ns = time_ns - np.minimum(since, round(_GAP * float(np.median(since))))
        return cls(begin_ns, time_ns, {**values, time_name: np.ones(len(time_ns))})


def metered(profile: Profile) -> dict[str, FloatArray]:
    """Energy, clock cycles, throttled time and sampled times of what ran on GPUs: own values by the names of `METERED`.

    Each is float64 [n_nodes]. A sample stands for the time since the one before, so what runs within one sample has the
    same mean power. What runs at the same time shares it equally: energies add up to that of the GPU while it was busy.
    What one of several sampled GPUs does not report is left out. Empty: there are no samples.

    Args:
        profile: With its slices in memory.
    """
    telemetry = telemetry_of(profile.meta)
    found = [
        {name: value for each in samples for name, value in _of_device(profile, gpu.ordinal, each).items()}
        for gpu in (telemetry.gpus if telemetry else ())
        if (samples := _samples(profile, gpu.ordinal, has_reasons=gpu.reason_samples > 0))
    ]
    names = [name for name in METERED if found and all(name in each for each in found)]
    return {name: np.sum([each[name] for each in found], axis=0) for name in names}


def _samples(profile: Profile, device: int, *, has_reasons: bool) -> list[_Samples]:
    """Those of power, and those of the clock with what holds it, which are taken together."""
    tracks = profile.tracks
    rows = np.flatnonzero((tracks.kind == TrackKind.COUNTER) & (tracks.device == device)).tolist()
    by_label = {tracks.label(row): profile.counters.take(profile.counters.track == row) for row in rows}
    found = []
    if (power := by_label.get(POWER_TRACK)) is not None:
        found.append(_Samples.of(power.time_ns, "metered_time", {"energy": power.value * _J_OF_W_NS}))
    if (clock := by_label.get(CLOCK_TRACK)) is not None:
        values = {"sm_cycles": clock.value * _CYCLES_OF_MHZ_NS}
        if has_reasons:
            limits = [by_label[label] for label in map(track_of_reason, LIMITS) if label in by_label]
            values["throttled_time"] = _is_held(limits, clock.time_ns).astype(np.float64)
        found.append(_Samples.of(clock.time_ns, "clocked_time", values))
    return [each for each in found if each is not None]


def _is_held(limits: list[CounterTable], time_ns: Int64Array) -> BoolArray:
    """Samples in which a limit held the clocks; the track of a limit begins with the first of them."""
    held = [np.isin(time_ns, points.time_ns[points.value > 0]) for points in limits]
    is_held: BoolArray = np.any([np.zeros(len(time_ns), np.bool_), *held], axis=0)
    return is_held


def _of_device(profile: Profile, device: int, samples: _Samples) -> dict[str, FloatArray]:
    tracks, slices = profile.tracks, profile.slices
    ran = slices.take(((tracks.kind == TrackKind.GPU_STREAM) & (tracks.device == device))[slices.track])
    start_ns, stop_ns = ran.start_ns, ran.start_ns + ran.duration_ns
    # Between neighbouring edges neither the sample nor the number of slices changes.
    edge_ns = np.unique(np.concatenate([start_ns, stop_ns, samples.begin_ns, samples.end_ns]))
    at_once = np.searchsorted(np.sort(start_ns), edge_ns, "right") - np.searchsorted(np.sort(stop_ns), edge_ns, "right")
    which = np.minimum(np.searchsorted(samples.end_ns, edge_ns, "right"), len(samples.end_ns) - 1)
    is_sampled = (samples.begin_ns[which] <= edge_ns) & (edge_ns < samples.end_ns[which])
    share_ns = np.diff(edge_ns, append=edge_ns[-1:]) * is_sampled / np.maximum(at_once, 1)
    first, last = np.searchsorted(edge_ns, start_ns), np.searchsorted(edge_ns, stop_ns)
    found: dict[str, FloatArray] = {}
    for name, values in samples.values.items():
        until = np.concatenate([[0.0], np.cumsum(share_ns * values[which])])
        found[name] = np.bincount(ran.node, until[last] - until[first], len(profile.tree)).astype(np.float64)
    return found
