"""What telemetry says of the steady state, from the samples of a timeline."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bragg.analyze.wall.wall_time import Steady
from bragg.model import Profile, TrackKind
from bragg.model.meta.telemetry import CLOCK_TRACK, IDLE_TRACK, LIMITS, POWER_TRACK, track_of_reason
from bragg.model.table import FloatArray


@dataclass(frozen=True)
class SteadyTelemetry:
    """One GPU in the steady state.

    Attributes:
        device: Ordinal of the GPU.
        samples: How often it was sampled.
        power_w: Mean power; None: it is not known.
        step_j: Energy of one step: mean power by its duration; None: without power or steps.
        sm_clock_mhz: Mean clock; None: it is not known.
        busy_samples: Samples of the clock in which the GPU had work.
        held: Share of these in which a limit held the clocks, by the names of `LIMITS`.
    """

    device: int
    samples: int
    power_w: float | None
    step_j: float | None
    sm_clock_mhz: float | None
    busy_samples: int
    held: dict[str, float]


def steady_telemetry(profile: Profile, steady: Steady | None) -> list[SteadyTelemetry]:
    """By device; none without a steady state or without samples in it."""
    if steady is None or not len(profile.counters):
        return []
    tracks, points = profile.tracks, profile.counters
    inside = (points.time_ns >= steady.begins_ns) & (points.time_ns < steady.ends_ns)
    values: dict[int, dict[str, FloatArray]] = {}
    for row in np.flatnonzero(tracks.kind == TrackKind.COUNTER).tolist():
        device = values.setdefault(int(tracks.device[row]), {})
        device[tracks.label(row)] = points.value[inside & (points.track == row)]
    told = [_of_device(device, of_device, steady) for device, of_device in sorted(values.items()) if device >= 0]
    return [each for each in told if each.samples]


def _of_device(device: int, values: dict[str, FloatArray], steady: Steady) -> SteadyTelemetry:
    nothing: FloatArray = np.zeros(0)
    power, clock = values.get(POWER_TRACK, nothing), values.get(CLOCK_TRACK, nothing)
    # What holds the clock is read together with it, and power by itself.
    busy = len(clock if len(clock) else power) - int(np.count_nonzero(values.get(IDLE_TRACK, nothing)))
    counts = {name: int(np.count_nonzero(values.get(track_of_reason(name), nothing))) for name in LIMITS}
    mean_w = float(power.mean()) if len(power) else None
    return SteadyTelemetry(
        device=device,
        samples=max(len(power), len(clock)),
        power_w=mean_w,
        step_j=mean_w * steady.step_ns / 1e9 if mean_w is not None and steady.n_steps else None,
        sm_clock_mhz=float(clock.mean()) if len(clock) else None,
        busy_samples=busy,
        held={name: min(count / busy, 1.0) for name, count in counts.items() if count and busy > 0},
    )
