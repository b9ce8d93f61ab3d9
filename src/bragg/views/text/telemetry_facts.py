"""What telemetry says of a run, in a line for each GPU."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any

from bragg.model.meta.run import Run
from bragg.model.meta.telemetry import HELD_REASONS, LIMITS, GpuTelemetry, Telemetry, telemetry_of
from bragg.views.text.style import printable
from bragg.views.text.units import bytes_text, count_text, share_text

_N_GPUS = 2
_LEAST_HELD = 0.1  # of the samples
_JOULES = ((3.6e6, "kWh"), (1e3, "kJ"), (1.0, "J"))
_NAMES = {
    "power_w": "power",
    "energy_j": "energy",
    "sm_clock_mhz": "SM clock",
    "memory_clock_mhz": "memory clock",
    "utilization_percent": "utilization",
    "memory_used_bytes": "memory in use",
    "temperature_c": "temperature",
    "clock_reasons": "reasons for lower clocks",
}
# Not every GPU and driver has them, and nothing that is shown lacks without them.
_SELDOM = ("pcie_", "nvlink_")


def telemetry_lines(meta: Mapping[str, Any]) -> list[str]:
    """`power 412 W mean, 2.1 kJ; SM clock 1,755 MHz; throttled by power in 40 % of samples`, for each of few GPUs.

    Telemetry that nobody asked for is worth a line where a limit held the clocks.
    """
    gpus = [gpu for told, gpu in _told(meta) if gpu.values and (told.is_asked or _is_limited(gpu))]
    texts = [f"{'' if len(gpus) == 1 else f'GPU {gpu.ordinal}: '}{_gpu_text(gpu)}" for gpu in gpus[:_N_GPUS]]
    if len(gpus) > _N_GPUS:
        texts.append(f"{count_text(len(gpus) - _N_GPUS, 'more GPU')}: bragg info --json")
    return [printable(text) for text in texts]


def telemetry_json(meta: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The same as JSON values; empty when no GPU was sampled."""
    return [{"rank": rank, **asdict(gpu)} for rank, gpu in _gpus(meta)]


def telemetry_warnings(meta: Mapping[str, Any]) -> Iterator[str]:
    """One line for what was asked for and could not be sampled."""
    for told in filter(None, map(telemetry_of, Run(meta).recording_metas)):
        if not told.is_asked:
            continue
        if told.reason:
            yield f"no telemetry of GPUs: {told.reason}"
        for gpu in told.gpus:
            if gpu.reason:
                yield f"no telemetry of GPU {gpu.ordinal}: {gpu.reason}"
            elif lacking := _lacking(gpu):
                yield f"GPU {gpu.ordinal} does not tell {'; '.join(lacking)}"
        if told.missed_samples:
            missed = count_text(told.missed_samples, "sample")
            yield f"{missed} of telemetry not taken: NVML took longer than the interval, or the machine was busy"
        if told.lost_values:
            yield f"{count_text(told.lost_values, 'value')} of telemetry not kept: the timeline was not written in time"


def _is_limited(gpu: GpuTelemetry) -> bool:
    return max((gpu.held.get(name, 0.0) for name in LIMITS), default=0.0) >= _LEAST_HELD


def _told(meta: Mapping[str, Any]) -> list[tuple[Telemetry, GpuTelemetry]]:
    told = filter(None, map(telemetry_of, Run(meta).recording_metas))
    return [(each, gpu) for each in told for gpu in each.gpus]


def _gpus(meta: Mapping[str, Any]) -> list[tuple[int | None, GpuTelemetry]]:
    return [
        (Run(each).rank, gpu)
        for each in Run(meta).recording_metas
        for told in [telemetry_of(each)]
        if told is not None
        for gpu in told.gpus
    ]


def _lacking(gpu: GpuTelemetry) -> list[str]:
    """`power, energy (Not Supported (3))`, by what the driver said."""
    by_reason: dict[str, list[str]] = defaultdict(list)
    for name, why in gpu.missing.items():
        if not name.startswith(_SELDOM):
            by_reason[why].append(_NAMES.get(name, name))
    return [f"{', '.join(names)}: {why}" for why, names in by_reason.items()]


def _gpu_text(gpu: GpuTelemetry) -> str:
    power, clock, temperature = gpu.mean("power_w"), gpu.mean("sm_clock_mhz"), gpu.values.get("temperature_c")
    memory = gpu.values.get("memory_used_bytes")
    energy = [] if gpu.energy_j is None else [_energy_text(gpu.energy_j)]
    parts = [
        ", ".join(["" if power is None else f"power {power:,.0f} W mean", *energy]).strip(", "),
        "" if clock is None else f"SM clock {clock:,.0f} MHz",
        "" if temperature is None else f"at most {temperature.most:.0f} C",
        "" if memory is None else f"memory at most {bytes_text(round(memory.most))}",
        *(f"clocks held by {HELD_REASONS[name]} in {share_text(share)} of samples" for name, share in gpu.held.items()),
    ]
    return "; ".join(filter(None, parts))


def _energy_text(joules: float) -> str:
    scale, unit = next(((scale, unit) for scale, unit in _JOULES if joules >= scale), _JOULES[-1])
    return f"{joules / scale:,.3g} {unit}"
