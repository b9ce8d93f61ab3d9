"""What the hardware and the system said while a program was recorded: power, clocks, temperature, load, memory.

`native/backends/telemetry` writes the sums of a phase into META under `telemetry`, and every sample on tracks of the
timeline. Names of tracks are those of its table, `quantities.h`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bragg.model.facts import Facts

POWER_TRACK, CLOCK_TRACK = "power (W)", "SM clock (MHz)"
# Tracks of whole GPUs that are sampled 50 times a second at most: too seldom to say anything of one kernel.
GPU_TRACKS = frozenset(
    {
        POWER_TRACK,
        CLOCK_TRACK,
        "memory clock (MHz)",
        "GPU utilization (%)",
        "memory utilization (%)",
        "memory used (B)",
        "temperature (C)",
        "PCIe received (B/s)",
        "PCIe sent (B/s)",
        "NVLink received (B/s)",
        "NVLink sent (B/s)",
    }
)
# Why clocks were lower than they could be, in words; an idle GPU has low clocks, too, and is not held.
HELD_REASONS: Mapping[str, str] = {
    "power": "power",
    "power_brake": "power brake",
    "thermal": "temperature",
    "hardware_thermal": "temperature",
    "hardware": "hardware slowdown",
    "application_clocks": "application clocks",
    "sync_boost": "sync boost",
    "display_clocks": "display clocks",
}
# Those that nobody chose, with what imposes them.
LIMITS: Mapping[str, str] = {
    "power": "power",
    "power_brake": "the power supply",
    "thermal": "temperature",
    "hardware_thermal": "temperature",
    "hardware": "the hardware's protection",
}
# Metrics of what ran on a GPU while it was sampled, with their units.
METERED: Mapping[str, str] = {
    "energy": "J",
    "metered_time": "ns",
    "sm_cycles": "cycles",
    "throttled_time": "ns",
    "clocked_time": "ns",
}
_IDLE = "idle"
IDLE_TRACK = "clocks: GPU idle"


@dataclass(frozen=True)
class Values:
    """Samples of one quantity, in the unit of its name."""

    samples: int
    mean: float
    least: float
    most: float


@dataclass(frozen=True)
class GpuTelemetry:
    """One GPU, all of its processes together.

    Attributes:
        ordinal: As the program counts its GPUs.
        values: By name, such as `power_w`, `sm_clock_mhz`, `temperature_c`, `memory_used_bytes`.
        energy_j: Of the GPU's own counter, over `energy_ns`; None: not known.
        energy_ns: Time between the counter's first and last reading.
        reason_samples: Samples that tell why clocks are held.
        held: Share of these samples in which a reason held the clocks, by the names of `HELD_REASONS`.
        idle: Share of these samples in which the GPU had nothing to do.
        reason: Why there is no telemetry of this GPU; empty: there is.
        missing: What the GPU or its driver does not tell, and why.
        has_instant_power: Whether power is that of the moment; else the driver's average over up to 1 s.
        sampled_by: The process whose readings these are at the end; None: the recorded process.
    """

    ordinal: int
    values: Mapping[str, Values]
    energy_j: float | None
    energy_ns: int
    reason_samples: int
    held: Mapping[str, float]
    idle: float
    reason: str
    missing: Mapping[str, str]
    has_instant_power: bool
    sampled_by: int | None = None

    def mean(self, name: str) -> float | None:
        """Mean of a quantity; None: it was not sampled."""
        values = self.values.get(name)
        return None if values is None else values.mean


@dataclass(frozen=True)
class Telemetry:
    """All that was sampled.

    Attributes:
        reason: Why no GPU was sampled; empty: some were, or the program used none.
        interval_ns: Time between two samples.
        gpus: By ascending ordinal.
        host: Of the process and its cgroup, by name, such as `cpu_percent`, `resident_bytes`.
        lost_values: Values that the timeline lacks.
        missed_samples: Samples not taken in time: NVML took longer than the interval, or the machine was busy.
        is_asked: Whether somebody asked for it; else it is what 0.1 % of a core affords, and lacks energy.
        taken_ns: The most that the program can have waited for it: time of its thread within NVML, which may hold locks
            of the driver, and CPU time elsewhere; of the whole process.
        span_ns: The time in which this was taken: since the program began to work on a GPU, or since sampling began.
    """

    reason: str
    interval_ns: int
    gpus: tuple[GpuTelemetry, ...]
    host: Mapping[str, Values]
    lost_values: int
    missed_samples: int
    is_asked: bool = True
    taken_ns: int = 0
    span_ns: int = 0


def track_of_reason(name: str) -> str:
    """The track that is 1 while a reason of `HELD_REASONS` holds the clocks, and 0 else."""
    hardware = " (hardware)" if name == "hardware_thermal" else ""
    return f"clocks held by {HELD_REASONS[name]}{hardware}"


def telemetry_of(meta: Mapping[str, Any]) -> Telemetry | None:
    """What `Profile.meta` tells; None: telemetry was not asked for."""
    facts = Facts(meta)
    if not facts.is_table("telemetry"):
        return None
    told = facts.table("telemetry")
    return Telemetry(
        reason=told.text("reason") or told.table("sampling").text("reason"),
        interval_ns=told.count("interval_ns"),
        gpus=tuple(_gpu(*device) for device in told.table("devices").numbered()),
        host=_values(told.table("host")),
        lost_values=told.count("lost_values"),
        missed_samples=told.table("sampling").count("missed_samples"),
        is_asked=not told.count("limit_ppm"),
        taken_ns=told.table("sampling").count("taken_ns"),
        span_ns=told.table("sampling").count("span_ns"),
    )


def _gpu(ordinal: int, table: Facts) -> GpuTelemetry:
    source, reasons = table.table("source"), table.table("clock_reasons")
    samples = reasons.count("samples")
    held = {name: reasons.count(name) for name in HELD_REASONS if samples and reasons.count(name)}
    energy_ns = table.count("energy_ns")
    missing = source.table("missing")
    return GpuTelemetry(
        ordinal=ordinal,
        values=_values(table),
        energy_j=table.number("energy_j") if energy_ns else None,
        energy_ns=energy_ns,
        reason_samples=samples,
        held={name: min(count / samples, 1.0) for name, count in held.items()},
        idle=min(reasons.count(_IDLE) / samples, 1.0) if samples else 0.0,
        reason=source.text("reason"),
        missing={name: missing.text(name) for name in missing},
        has_instant_power=source.text("power_is") == "instant",
        sampled_by=source.count("sampled_by") or None,
    )


def _values(table: Facts) -> dict[str, Values]:
    return {
        name: Values(row.count("samples"), row.number("mean"), row.number("least"), row.number("most"))
        for name, row in table.tables().items()
        if row.count("samples") and "mean" in row
    }


def united(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """META's `telemetry` of two consecutive phases of one session, as one.

    Means are weighted by their samples, extremes are extremes of both, counts and energy add up; `sampling`, which
    tells of the whole process, is that of the later phase.
    """
    return _united({**one}, {**other})


def _united(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    together = {**one, **other}
    for name in one.keys() & other.keys():
        mine, theirs = one[name], other[name]
        if name in ("sampling", "source", "interval_ns", "limit_ppm", "lost_values"):
            continue
        if isinstance(mine, dict) and isinstance(theirs, dict):
            are_values = "mean" in mine and "mean" in theirs
            together[name] = _sum_of_values(mine, theirs) if are_values else _united(mine, theirs)
        elif _is_number(mine) and _is_number(theirs):
            together[name] = mine + theirs
    return together


def _sum_of_values(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    both = [Facts(one), Facts(other)]
    samples = sum(each.count("samples") for each in both)
    weighted = sum(each.count("samples") * each.number("mean") for each in both)
    return {
        "samples": samples,
        "mean": weighted / samples if samples else 0.0,
        "least": min(each.number("least") for each in both),
        "most": max(each.number("most") for each in both),
    }


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
