"""Which metrics are shown, and what they are called by users."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bragg.errors import NothingRecorded, UsageError
from bragg.model import Metric, MetricKind, Profile
from bragg.model.table import FloatArray
from bragg.views.terminal.units import Scale, scale_for

__all__ = ["Column", "choose_names", "flat_columns", "tree_columns"]

_AVERAGES = {"gpu_time_avg": ("gpu_time", "gpu_count"), "host_time_avg": ("host_time", "host_count")}
# The first that the profile has is meant.
_SHORT_NAMES = {
    "time": ("gpu_time", "host_time"),
    "count": ("gpu_count", "host_count"),
    "calls": ("gpu_count", "host_count"),
    "avg": ("gpu_time_avg", "host_time_avg"),
    "min": ("gpu_time_min",),
    "max": ("gpu_time_max",),
    "bytes": ("gpu_bytes",),
}


@dataclass(frozen=True, eq=False)
class Column:
    """One metric of a table or tree.

    Attributes:
        name: Of the metric.
        unit: As stored.
        kind: How it behaves along a call path.
        values: float64 [n_rows]; NaN where there is none.
        total: What shares are of; NaN when values do not add up.
    """

    name: str
    unit: str
    kind: MetricKind
    values: FloatArray
    total: float

    @cached_property
    def scale(self) -> Scale:
        """How its values are written."""
        return scale_for(self.unit, float(np.nanmax(self.values, initial=0.0)))

    def text(self, row: int) -> str:
        """A value without its unit; blank where there is none."""
        value = float(self.values[row])
        is_absent = value == 0 and self.kind is MetricKind.EXCLUSIVE
        return "" if is_absent else self.scale.text(value)

    def share(self, row: int) -> float:
        """Share of the total, 0 to 1; NaN when values do not add up."""
        return float(self.values[row]) / self.total if self.total else 0.0


def choose_names(profile: Profile, requested: Sequence[str], defaults: Sequence[str]) -> list[str]:
    """The metrics to show, in order.

    Args:
        profile: What is shown.
        requested: As the user wrote them: any case, short forms; empty for the defaults.
        defaults: Endings (`time`, `count`, ...) for GPU metrics, or host metrics where no GPU time was recorded.

    Raises:
        UsageError: A requested metric is not there; the hint lists those that are.
        NothingRecorded: The profile has no metric.
    """
    available = [*profile.metrics, *(name for name, parts in _AVERAGES.items() if set(parts) <= profile.metrics.keys())]
    if not available:
        raise NothingRecorded("this profile holds no metric")
    if requested:
        return [_resolve(name, available) for name in requested]
    side = "gpu" if "gpu_time" in profile.metrics and profile.total("gpu_time") else "host"
    usual = [name for name in (f"{side}_{ending}" for ending in defaults) if name in available]
    return [name for name in usual if _has_values(profile, name)] or usual[:1] or available[:1]


def tree_columns(profile: Profile, names: Sequence[str]) -> list[Column]:
    """The columns of a tree: [n_nodes] values, with what ran below where metrics add up."""
    return [_column(name, profile.metrics, profile.inclusive) for name in names]


def flat_columns(metrics: Mapping[str, Metric], names: Sequence[str]) -> list[Column]:
    """The columns of a table of own values."""
    return [_column(name, metrics, lambda part: metrics[part].own) for name in names]


def _column(name: str, metrics: Mapping[str, Metric], values_of: Callable[[str], NDArray[Any]]) -> Column:
    if name in _AVERAGES:
        time, count = (values_of(part).astype(np.float64) for part in _AVERAGES[name])
        average = np.divide(time, count, out=np.full(len(time), np.nan), where=count > 0)
        return Column(name, metrics[_AVERAGES[name][0]].unit, MetricKind.PROPERTY, average, np.nan)
    metric = metrics[name]
    total = np.nan if metric.kind is MetricKind.PROPERTY else float(metric.own.sum())
    return Column(name, metric.unit, metric.kind, values_of(name).astype(np.float64), total)


def _has_values(profile: Profile, name: str) -> bool:
    return all(np.nan_to_num(profile.own(part)).any() for part in _AVERAGES.get(name, (name,)))


def _resolve(requested: str, available: Sequence[str]) -> str:
    wanted = requested.strip().lower()
    by_lower_case = {name.lower(): name for name in available}
    for candidate in (wanted, *_SHORT_NAMES.get(wanted, ())):
        if candidate in by_lower_case:
            return by_lower_case[candidate]
    raise UsageError(f"this profile has no metric {requested!r}", hint=f"It has: {', '.join(available)}")
