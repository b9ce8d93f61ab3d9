"""Metrics that are computed from recorded ones: utilisation, rates, averages, shares.

All are ratios of sums: numerator and denominator are added up along call paths first. So they can be computed after
nodes were folded, grouped or filtered, provided that `with_roof_time` and `with_host_wait` saw the profile before,
while kernels had devices of their own and calls their names.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bragg.analyze.host_wait import HOST_WAIT, with_host_wait
from bragg.analyze.specs import WIDTHS
from bragg.analyze.work import (
    MEASURED_BYTES,
    NO_ROOF,
    ROOF_TIME,
    devices_of,
    has_flops,
    has_work,
    own_work,
    why_no_roof,
    with_roof_time,
)
from bragg.code.stall_reasons import StallGroup, stall_metrics
from bragg.errors import UsageError
from bragg.model import Metric, MetricKind, Profile
from bragg.model.table import BoolArray, FloatArray

__all__ = ["Derived", "evaluate", "is_derived", "list_available", "with_host_wait", "with_roof_time"]

_NS_OF_UNIT = {"s": 1e9, "ms": 1e6, "us": 1e3, "ns": 1.0}
_SIZE_OF_PREFIX = {"": 1.0, "g": 1e9, "t": 1e12}
# Names that users of other profilers know, where the profile has no metric of that very name.
_OTHER_NAMES = {"time": "gpu_time", "count": "gpu_count", "cpu_time": "host_time"}
_STALL_GROUPS = {f"stall_{group.value.replace(' ', '_')}": group for group in StallGroup if group.is_stall}
# What sampled counters say is of the kernels that they tell apart (formats/captured/counted.py).
_OF_COUNTED_TIME = ("tensor_active", "sm_active", "occupancy", "l2_busy", "l1_busy", "pipe_busy")
# The set of counters that has them, where it is not the default one.
_OF_SET = {"l2_busy": " l2", "l1_busy": " units", "pipe_busy": " units"}
# What samples of telemetry say of the time that they cover (formats/captured/metered.py): metric, unit, and how many of
# it are one of the metric's unit by nanosecond.
_OF_METERED_TIME = {
    "power": ("energy", "W", 1e9),
    "sm_clock": ("sm_cycles", "MHz", 1e3),
    "throttled": ("throttled_time", "%", 100.0),
}
_NOT_COUNTED = "no kernel here or below that counters tell"
_NO_SAMPLE = "no sample of telemetry while this ran on a GPU"
_NO_TIME = "no GPU time here or below"
_NO_WORK = "no flops or bytes here or below"
_NO_PEAK = "a device below has no known peak"


@dataclass(frozen=True, eq=False)
class Derived:
    """A computed metric over all nodes of a tree.

    Attributes:
        name: As asked for, in lower case.
        unit: Of the values; empty for a plain ratio.
        kind: Inclusive when values of siblings add up to their parent's, else a property.
        values: float64 [n_nodes], with what ran below; NaN where there is none.
        reasons: Why values are missing, one line each.
        reason: int64 [n_nodes], row of `reasons`; -1 where there is a value.
    """

    name: str
    unit: str
    kind: MetricKind
    values: FloatArray
    reasons: tuple[str, ...]
    reason: NDArray[np.int64]

    def why_absent(self, node: int) -> str:
        """Why a node has no value; empty when it has one."""
        row = int(self.reason[node])
        return self.reasons[row] if row >= 0 else ""


def is_derived(name: str) -> bool:
    """Whether `evaluate` knows this name; the profile may still lack its ingredients."""
    return any(re.fullmatch(pattern, name.strip().lower()) for pattern in _RULES)


def evaluate(profile: Profile, name: str) -> Derived:
    """Compute a metric at every node.

    `util` (share of the roof), `intensity` (flop/byte), `{,g,t}flop{,4,8,16,32,64}/s`, `{,g,t}byte/s`,
    `{,avg_}{,cpu_}time/{s,ms,us,ns}`, `gpu_wait` (host time beyond GPU time), `stall_<group>` (of sampled
    instructions), `dram_gbs` and `share_of_peak` (of bandwidth), `tensor_active`, `sm_active`, `l1_busy`, `l2_busy`,
    `pipe_busy` and `occupancy` (shares of the time that counters tell), `power`, `sm_clock` and `throttled` (of the
    GPU while it ran this), `<metric>/%` and `<metric>/own`.
    Names are read in any case.

    Raises:
        UsageError: There is no such metric, or the profile lacks what it is computed from.
    """
    wanted = name.strip().lower()
    for pattern, rule in _RULES.items():
        match = re.fullmatch(pattern, wanted)
        if match:
            return rule(profile, wanted, *match.groups())
    raise UsageError(f"there is no derived metric {name!r}", hint=_hint(profile))


def list_available(profile: Profile) -> list[str]:
    """Names of the metrics that the profile has the ingredients of."""
    names: list[str] = []
    if "gpu_time" in profile.metrics:
        amounts = ["flop"] * has_flops(profile)
        amounts += [f"flop{width}" for width in WIDTHS if f"flops{width}" in profile.metrics]
        amounts += ["byte"] * ("bytes" in profile.metrics)
        names += ["util"] * has_work(profile)
        has_bytes = not {"bytes", MEASURED_BYTES}.isdisjoint(profile.metrics)
        names += ["intensity"] * (has_flops(profile) and has_bytes)
        names += [f"{prefix}{amount}/s" for amount in amounts for prefix in _SIZE_OF_PREFIX]
    names += ["dram_gbs", "share_of_peak"] * (MEASURED_BYTES in profile.metrics)
    names += [name for name in _OF_COUNTED_TIME if f"{name}_time" in profile.metrics]
    names += [name for name, (metric, *_) in _OF_METERED_TIME.items() if metric in profile.metrics]
    if {"gpu_time", "host_time"} <= profile.metrics.keys():
        names.append("gpu_wait")
    for time in filter(lambda time: _name_of(profile, time), ("time", "cpu_time")):
        averages = ["avg_"] if _count_of(profile, time) else []
        names += [f"{average}{time}/{unit}" for average in ("", *averages) for unit in _NS_OF_UNIT]
    groups = {reason.group for reason in stall_metrics(profile.metrics).values()}
    names += [name for name, group in _STALL_GROUPS.items() if group in groups]
    adding_up = [item for item, metric in profile.metrics.items() if metric.kind is not MetricKind.PROPERTY]
    own = [f"{item}/own" for item in adding_up if profile.metrics[item].kind is MetricKind.INCLUSIVE]
    return [*names, *(f"{item}/%" for item in adding_up), *own]


def _util(profile: Profile, name: str) -> Derived:
    _require(profile, name, "gpu_time")
    if ROOF_TIME not in profile.metrics and not has_work(profile):
        raise UsageError(
            "util needs flops or bytes, and this profile has none",
            hint="bragg run --counters measures; or give flops and bytes to kernels by launch_metadata of triton.jit",
        )
    profile = with_roof_time(profile)
    time_ns, roof_ns = profile.inclusive("gpu_time"), profile.inclusive(ROOF_TIME)
    unknown = profile.inclusive(NO_ROOF) > 0
    why_unknown = why_no_roof(profile) if unknown.any() else ""
    checks = [(time_ns == 0, _NO_TIME), (unknown, why_unknown or _NO_PEAK), (roof_ns == 0, _NO_WORK)]
    return _ratio(name, "", MetricKind.PROPERTY, roof_ns, time_ns, checks)


def _intensity(profile: Profile, name: str) -> Derived:
    if MEASURED_BYTES not in profile.metrics:
        _require(profile, name, "bytes")
    work = own_work(profile)
    flops, size = profile.tree.sum_up(work.all_flops), profile.tree.sum_up(work.bytes)
    checks = [(flops == 0, "no flops here or below"), (size == 0, "no bytes here or below")]
    return _ratio(name, "flop/B", MetricKind.PROPERTY, flops, size, checks)


def _rate(profile: Profile, name: str, prefix: str, amount: str) -> Derived:
    metric = amount.replace("flop", "flops").replace("byte", "bytes")
    if metric != "flops" or not has_flops(profile):
        _require(profile, name, metric)
    _require(profile, name, "gpu_time")
    work = own_work(profile)
    own = {"flops": work.all_flops, "bytes": work.bytes}.get(metric)
    total = profile.tree.sum_up(work.flops[int(amount[4:])] if own is None else own)
    time_ns = profile.inclusive("gpu_time")
    unit = f"{prefix.upper()}{'B' if metric == 'bytes' else 'flop'}/s"
    checks = [(time_ns == 0, _NO_TIME), (total == 0, f"no {metric} here or below")]
    return _ratio(name, unit, MetricKind.PROPERTY, total * 1e9 / _SIZE_OF_PREFIX[prefix], time_ns, checks)


def _counted(profile: Profile, name: str) -> Derived:
    """A rate of memory, or a share of the time that counters tell of."""
    group, metric = (name, f"{name}_time") if name in _OF_COUNTED_TIME else ("dram", MEASURED_BYTES)
    if metric not in profile.metrics:
        raise UsageError(
            f"{name} needs hardware counters that this profile does not have",
            hint=f"bragg run --counters{_OF_SET.get(name, '')}",
        )
    time_ns, value = profile.inclusive(f"{group}_counted_time"), profile.inclusive(metric).astype(np.float64)
    checks = [(time_ns == 0, _NOT_COUNTED)]
    if name == "dram_gbs":
        return _ratio(name, "GB/s", MetricKind.PROPERTY, value, time_ns, checks)
    if name == "share_of_peak":
        devices = devices_of(profile)
        peaks = np.array([*((peak.bytes_per_s or np.nan) for peak in devices.peaks), np.nan, np.nan])
        value = value / (peaks[devices.of_node] / 1e9)  # rows -1 and -2, of no device or several, are the last ones
        checks.append((np.isnan(value), _NO_PEAK))
    return _ratio(name, "%", MetricKind.PROPERTY, value * 100.0, time_ns, checks)


def _metered(profile: Profile, name: str) -> Derived:
    metric, unit, scale = _OF_METERED_TIME[name]
    if metric not in profile.metrics:
        raise UsageError(
            f"{name} needs telemetry in a timeline, and this profile has none",
            hint="bragg run --telemetry --data trace",
        )
    has_own_time = metric != "energy" and "clocked_time" in profile.metrics  # before, all were sampled at once
    time_ns = profile.inclusive("clocked_time" if has_own_time else "metered_time")
    return _ratio(
        name, unit, MetricKind.PROPERTY, profile.inclusive(metric) * scale, time_ns, [(time_ns == 0, _NO_SAMPLE)]
    )


def _time(profile: Profile, name: str, average: str | None, cpu: str | None, unit: str) -> Derived:
    metric = _required_metric(profile, name, f"{cpu or ''}time")
    time = profile.inclusive(metric.name) / _NS_OF_UNIT[unit]
    if not average:
        side = "GPU" if metric.name == "gpu_time" else "CPU"
        return _ratio(name, unit, metric.kind, time, np.ones(len(time)), [(time == 0, f"no {side} time here or below")])
    count_name = _count_of(profile, f"{cpu or ''}time")
    if not count_name:
        raise UsageError(f"{name} needs a count, and this profile has none", hint=_hint(profile))
    count = profile.inclusive(count_name)
    return _ratio(name, unit, MetricKind.PROPERTY, time, count, [(count == 0, "nothing was counted here")])


def _stalls(profile: Profile, name: str) -> Derived:
    """Samples of warps that waited for something of one group, whatever the vendor calls it."""
    group = _STALL_GROUPS[name]
    reasons = stall_metrics(profile.metrics)
    if not reasons:
        raise UsageError(f"{name} needs samples of instructions, and this profile has none", hint="bragg run --sample")
    values = np.zeros(len(profile.tree))
    for metric, reason in reasons.items():
        values += profile.inclusive(metric) * (reason.group is group)
    return _ratio(name, "1", MetricKind.INCLUSIVE, values, np.ones(len(values)), [])


def _gpu_wait(profile: Profile, name: str) -> Derived:
    """Host time of a path beyond its GPU time, without what the host itself waits for the GPU."""
    _require(profile, name, "gpu_time")
    _require(profile, name, "host_time")
    waited_ns = with_host_wait(profile).inclusive(HOST_WAIT)
    beyond_ns = profile.inclusive("host_time") - waited_ns - profile.inclusive("gpu_time")
    return _ratio(name, "ns", MetricKind.PROPERTY, beyond_ns, np.ones(len(beyond_ns)), [(beyond_ns <= 0, "")])


def _share(profile: Profile, name: str, base: str) -> Derived:
    metric = _adding_up(profile, name, base)
    total = np.full(len(metric.own), float(metric.own.sum()))
    values = profile.inclusive(metric.name)
    return _ratio(name, "%", metric.kind, values * 100.0, total, [(total == 0, f"{base} is zero everywhere")])


def _own(profile: Profile, name: str, base: str) -> Derived:
    metric = _adding_up(profile, name, base)
    values = metric.own.astype(np.float64)
    return _ratio(name, metric.unit, MetricKind.PROPERTY, values, np.ones(len(values)), [])


_RULES: dict[str, Callable[..., Derived]] = {
    "util": _util,
    "intensity": _intensity,
    rf"([gt]?)(flop(?:{'|'.join(map(str, WIDTHS))})?|byte)/s": _rate,
    r"(avg_)?(cpu_)?time/(s|ms|us|ns)": _time,
    "|".join(("dram_gbs", "share_of_peak", *_OF_COUNTED_TIME)): _counted,
    "|".join(_OF_METERED_TIME): _metered,
    "gpu_wait": _gpu_wait,
    "|".join(_STALL_GROUPS): _stalls,
    r"(.+)/%": _share,
    r"(.+)/own": _own,
}


def _ratio(
    name: str,
    unit: str,
    kind: MetricKind,
    numerator: NDArray[Any],
    denominator: NDArray[Any],
    checks: Sequence[tuple[BoolArray, str]],
) -> Derived:
    """A quotient without the nodes that fail a check; of several, the first one that fails names the reason."""
    reason = np.full(len(numerator), -1, np.int64)
    for row in reversed(range(len(checks))):
        reason[checks[row][0]] = row
    values = np.full(len(numerator), np.nan)
    np.divide(numerator, denominator, out=values, where=reason < 0)
    return Derived(name, unit, kind, values, tuple(text for _, text in checks), reason)


def _required_metric(profile: Profile, name: str, part: str) -> Metric:
    found = _name_of(profile, part)
    if not found:
        raise UsageError(f"{name} needs {part}, and this profile has none", hint=_hint(profile))
    return profile.metrics[found]


def _adding_up(profile: Profile, name: str, part: str) -> Metric:
    metric = _required_metric(profile, name, part)
    if metric.kind is MetricKind.PROPERTY:
        raise UsageError(f"{name}: {part} does not add up", hint=_hint(profile))
    return metric


def _require(profile: Profile, name: str, part: str) -> None:
    _required_metric(profile, name, part)


def _name_of(profile: Profile, name: str) -> str | None:
    """The profile's metric that is meant; None when it has none."""
    by_lower_case = {known.lower(): known for known in profile.metrics}
    return by_lower_case.get(name) or by_lower_case.get(_OTHER_NAMES.get(name, ""))


def _count_of(profile: Profile, time: str) -> str | None:
    """The count that a time is divided by: entries for host time, else kernels."""
    preferred = ("host_count", "gpu_count") if time == "cpu_time" else ("gpu_count",)
    return next((name for name in preferred if name in profile.metrics), None)


def _hint(profile: Profile) -> str:
    names = list_available(profile)
    return f"This profile has: {', '.join(names)}" if names else "This profile has nothing to compute metrics from"
