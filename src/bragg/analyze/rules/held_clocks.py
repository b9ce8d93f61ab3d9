"""GPUs whose clocks a limit of power or temperature held down while they had work."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.causes.needs import TELEMETRY
from bragg.analyze.causes.thresholds import HELD_CLOCKS
from bragg.analyze.engine import Rule, Subject
from bragg.model import Confidence, Finding, Quantity, Severity
from bragg.model.telemetry import IDLE_TRACK, GpuTelemetry, track_of_reason
from bragg.model.trace import TrackKind

__all__ = ["RULE"]

_POWER = "lower the power that the work takes, such as by narrower types or less traffic, or raise the GPU's limit"
_HEAT = "improve the cooling of the GPU, or give it less power"
_HARDWARE = "have the power supply and the cooling of the host checked"
_CHANGES = {
    "power": _POWER,
    "power_brake": _HARDWARE,
    "thermal": _HEAT,
    "hardware_thermal": _HEAT,
    "hardware": _HARDWARE,
}
_LIMITS = {
    "power": "power",
    "power_brake": "the power supply",
    "thermal": "temperature",
    "hardware_thermal": "temperature",
    "hardware": "the hardware's protection",
}
_LEAST_SAMPLES = 10


def _find(evidence: Evidence) -> Iterator[Finding]:
    told = evidence.telemetry
    for gpu in told.gpus if told else ():
        of_steady = _in_steady_state(evidence, gpu)
        samples, held = of_steady or _of_recording(gpu)
        name = max(held, key=held.__getitem__, default="")
        if samples < _LEAST_SAMPLES or not name or held[name] < HELD_CLOCKS.value:
            continue
        clock = gpu.values.get("sm_clock_mhz")
        when = "the steady state" if of_steady else "the time in which it had work"
        much = f"{held[name] * 100:.0f} % of {when}"
        clocks = f": SM clock {clock.mean:,.0f} MHz mean, {clock.most:,.0f} MHz at most" if clock else ""
        yield Finding(
            "held-clocks",
            Severity.NOTE,
            f"the clocks of GPU {gpu.ordinal} were held by {_LIMITS[name]} in {much}{clocks}",
            _CHANGES[name],
            evidence=(
                *(Quantity(f"held by {_LIMITS[each]}", share, "share") for each, share in held.items()),
                Quantity("samples", samples),
                *([Quantity("mean SM clock", clock.mean, "MHz")] if clock else []),
            ),
            confidence=Confidence.PROVEN,
        )


def _of_recording(gpu: GpuTelemetry) -> tuple[int, dict[str, float]]:
    """Samples in which the GPU had work, and the share of them that each limit held."""
    busy = round(gpu.reason_samples * (1 - gpu.idle))
    held = {name: gpu.held[name] * gpu.reason_samples / busy for name in _LIMITS if name in gpu.held and busy}
    return busy, {name: min(share, 1.0) for name, share in held.items()}


def _in_steady_state(evidence: Evidence, gpu: GpuTelemetry) -> tuple[int, Mapping[str, float]] | None:
    """The same within the steady state; None where no timeline has the samples."""
    steady, profile = evidence.steady, evidence.profile
    if steady is None or not len(profile.counters):
        return None
    tracks, points = profile.tracks, profile.counters
    inside = (points.time_ns >= steady.begins_ns) & (points.time_ns < steady.ends_ns)
    values = {
        tracks.label(row): points.value[inside & (points.track == row)]
        for row in np.flatnonzero((tracks.kind == TrackKind.COUNTER) & (tracks.device == gpu.ordinal)).tolist()
    }
    clock = values.get("SM clock (MHz)")
    if clock is None or not len(clock):
        return None
    busy = len(clock) - int(np.count_nonzero(values.get(IDLE_TRACK, np.zeros(0))))
    counts = {name: int(np.count_nonzero(values.get(track_of_reason(name), np.zeros(0)))) for name in _LIMITS}
    return busy, {name: min(count / busy, 1.0) for name, count in counts.items() if count and busy}


RULE = Rule(
    _find,
    Subject.ANALYSIS,
    "clocks that a limit of power or temperature holds down",
    (TELEMETRY,),
    (HELD_CLOCKS,),
    _POWER,
)
