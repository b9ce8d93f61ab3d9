"""GPUs whose clocks a limit of power or temperature held down while they had work."""

from __future__ import annotations

from collections.abc import Iterator

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.causes.needs import TELEMETRY
from bragg.analyze.causes.thresholds import HELD_CLOCKS
from bragg.analyze.engine import Rule
from bragg.analyze.steady_telemetry import steady_telemetry
from bragg.model import Confidence, Finding, Quantity, Severity
from bragg.model.finding import percent_text
from bragg.model.meta.telemetry import LIMITS, GpuTelemetry

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
_LEAST_SAMPLES = 10


def _find(evidence: Evidence) -> Iterator[Finding]:
    told = evidence.telemetry
    steady = {each.device: each for each in steady_telemetry(evidence.profile, evidence.steady)}
    gpus = evidence.bounding.ordinals
    for gpu in told.gpus if told else ():
        if gpus is not None and gpu.ordinal not in gpus:
            continue
        of_steady = steady.get(gpu.ordinal)
        samples, held = (of_steady.busy_samples, of_steady.held) if of_steady else _of_recording(gpu)
        name = max(held, key=held.__getitem__, default="")
        if samples < _LEAST_SAMPLES or not name or held[name] < HELD_CLOCKS.value:
            continue
        clock = gpu.values.get("sm_clock_mhz")
        mean_mhz = of_steady.sm_clock_mhz if of_steady else clock.mean if clock else None
        when = "the steady state" if of_steady else "the time in which it had work"
        much = f"{percent_text(held[name])} of {when}"
        most = f", {clock.most:,.0f} MHz at most{' in the recording' if of_steady else ''}" if clock else ""
        clocks = f": SM clock {mean_mhz:,.0f} MHz mean{most}" if mean_mhz is not None else ""
        yield Finding(
            "held-clocks",
            Severity.NOTE,
            f"the clocks of GPU {gpu.ordinal} were held by {LIMITS[name]} in {much}{clocks}",
            _CHANGES[name],
            evidence=(
                *(Quantity(f"held by {LIMITS[each]}", share, "share") for each, share in held.items()),
                Quantity("samples", samples),
                *([Quantity("mean SM clock", mean_mhz, "MHz")] if mean_mhz is not None else []),
            ),
            confidence=Confidence.PROVEN,
        )


def _of_recording(gpu: GpuTelemetry) -> tuple[int, dict[str, float]]:
    """Samples in which the GPU had work, and the share of them that each limit held."""
    busy = round(gpu.reason_samples * (1 - gpu.idle))
    held = {name: gpu.held[name] * gpu.reason_samples / busy for name in LIMITS if name in gpu.held and busy}
    return busy, {name: min(share, 1.0) for name, share in held.items()}


RULE = Rule(_find, "clocks that a limit of power or temperature holds down", (TELEMETRY,), (HELD_CLOCKS,), _POWER)
