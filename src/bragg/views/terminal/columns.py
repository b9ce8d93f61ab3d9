"""Which metrics are shown, and what they are called by users."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from bragg.errors import NothingRecorded, UsageError
from bragg.grouping.regions import REGIONS
from bragg.model import Metric, MetricKind, Profile
from bragg.model.table import FloatArray
from bragg.views.terminal.formulas import NO_FORMULAS, Formulas
from bragg.views.text.metric_meanings import MEANINGS
from bragg.views.text.style import printable
from bragg.views.text.units import Scale, scale_for

_AVERAGES = {"gpu_time_avg": ("gpu_time", "gpu_count"), "host_time_avg": ("host_time", "host_count")}
# Columns that are compared with each other, by the ends of their names.
_COMPARED = (("_avg", "_mean", "_min", "_max", "_p50", "_p95", "_p99"), REGIONS)
# The first that the profile has is meant.
_SHORT_NAMES = {
    "time": ("gpu_time", "host_time"),
    "cpu_time": ("host_time",),
    "count": ("gpu_count", "host_count"),
    "calls": ("gpu_count", "host_count"),
    "avg": ("gpu_time_avg", "host_time_avg"),
    "min": ("gpu_time_min",),
    "max": ("gpu_time_max",),
    "bytes": ("gpu_bytes",),
    "p50": ("gpu_time_p50",),
    "p95": ("gpu_time_p95",),
    "p99": ("gpu_time_p99",),
    "first": ("gpu_time_first",),
    "first_seen": ("gpu_time_first",),
}
# Metrics that only some views have, by the beginning of their names.
_ELSEWHERE = {
    **dict.fromkeys(("gpu_time_p", "gpu_time_first"), "--flat"),
    "gpu_idle_": "--idle",
    "region_": "--group-by region",
}
# Of these a node shows the largest at or below it.
_EXTREMES = ("gpu_idle_longest",)
_N_NEAREST = 3
_N_NAMED = 8


def _never_absent(row: int) -> str:
    return ""


@dataclass(frozen=True, eq=False)
class Column:
    """One metric of a table or tree.

    Attributes:
        name: Of the metric.
        unit: As stored.
        kind: How it behaves along a call path.
        values: float64 [n_rows]; NaN where there is none.
        total: What shares are of; NaN when values do not add up.
        is_whole: All values are integers.
        is_difference: Values say how much more or less than elsewhere.
        why_absent: Why a row has no value; empty where that needs no reason.
        largest: What decides in which unit values are written; None: the largest of them.
    """

    name: str
    unit: str
    kind: MetricKind
    values: FloatArray
    total: float
    is_whole: bool = False
    is_difference: bool = False
    why_absent: Callable[[int], str] = field(default=_never_absent)
    largest: float | None = None

    @cached_property
    def scale(self) -> Scale:
        """How its values are written."""
        scale = scale_for(self.unit, self.magnitude if self.largest is None else self.largest)
        return replace(scale, decimals=0) if self.is_whole and scale.divisor == 1.0 else scale

    @property
    def magnitude(self) -> float:
        """The largest absolute value, 0 where there is none."""
        return float(np.nanmax(np.abs(self.values), initial=0.0))

    def text(self, row: int) -> str:
        """A value without its unit; blank where there is none, `n/a` where that has a reason."""
        value = float(self.values[row])
        if np.isnan(value):
            return "n/a" if self.why_absent(row) else ""
        if value == 0 and (self.kind is MetricKind.EXCLUSIVE or self.is_difference):
            return ""
        text = self.scale.text(value)
        return f"+{text}" if self.is_difference and value > 0 else text

    def share(self, row: int) -> float:
        """Share of the total, 0 to 1; NaN where there is no value, or values do not add up."""
        return float(self.values[row]) / self.total if self.total else 0.0

    def minus(self, other: Column) -> Column:
        """How much more this column has than another one, row by row; no value counts as none of it."""
        if self.kind is MetricKind.PROPERTY:
            values = self.values - other.values
        else:
            values = np.nan_to_num(self.values) - np.nan_to_num(other.values)
        return replace(
            self, values=values, kind=MetricKind.PROPERTY, total=np.nan, is_difference=True, why_absent=_never_absent
        )


def absence_notes(columns: Sequence[Column], rows: Sequence[int]) -> list[str]:
    """Why rows have no value: each reason once, with the metrics that it is about."""
    names: dict[str, list[str]] = {}
    for column in columns:
        for reason in dict.fromkeys(filter(None, map(column.why_absent, rows))):
            names.setdefault(reason, []).append(column.name)
    return [f"{printable(', '.join(about))} n/a: {reason}" for reason, about in names.items()]


@dataclass(frozen=True, eq=False)
class ColumnChoice:
    """The metrics to show of a profile.

    Attributes:
        names: In order.
        sort: What decides which rows are hot; one of `names` or another.
        formulas: Computes what was not recorded.
    """

    names: list[str]
    sort: str
    formulas: Formulas

    @classmethod
    def of(
        cls,
        profile: Profile,
        requested: Sequence[str],
        defaults: Sequence[str],
        sort: str | None,
        formulas: Formulas,
    ) -> ColumnChoice:
        """The choice of a user.

        Args:
            profile: What is shown.
            requested: See `choose_names`.
            defaults: See `choose_names`.
            sort: As the user wrote it; None or `name` for the first metric.
            formulas: Computes what was not recorded.
        """
        names = choose_names(profile, requested, defaults, formulas)
        by_first = sort is None or sort == "name"
        return cls(names, names[0] if by_first else choose_names(profile, [sort or ""], (), formulas)[0], formulas)

    def columns(self, profile: Profile) -> list[Column]:
        """The columns: [n_nodes] values, with what ran below where metrics add up."""
        return columns_of(profile, self.names, self.formulas)

    def sort_column(self, profile: Profile) -> Column:
        """The column that decides which rows are hot: that of time where the chosen one is not known of the whole."""
        column = columns_of(profile, [self.sort], self.formulas)[0]
        is_known = not np.isnan(column.values[0]) or not column.why_absent(0)
        return column if is_known else columns_of(profile, choose_names(profile, (), ("time",)))[0]


def choose_names(
    profile: Profile, requested: Sequence[str], defaults: Sequence[str], formulas: Formulas = NO_FORMULAS
) -> list[str]:
    """The metrics to show, in order.

    Args:
        profile: What is shown.
        requested: As the user wrote them: any case, with or without unit, short forms; empty for the defaults.
        defaults: Endings (`time`, `count`, ...) for GPU metrics, or host metrics where no GPU time was recorded.
        formulas: Names that are computed.

    Raises:
        UsageError: A requested metric is not there; the hint lists the nearest.
        NothingRecorded: The profile has no metric.
    """
    available = [*profile.metrics, *(name for name, parts in _AVERAGES.items() if set(parts) <= profile.metrics.keys())]
    if not available:
        raise NothingRecorded("this profile holds no metric", hint="bragg info shows what it holds")
    if requested:
        return [_resolve(name, available, formulas, profile) for name in requested]
    side = "gpu" if profile.measured("gpu_time") else "host"
    usual = [name for name in (f"{side}_{ending}" for ending in defaults) if name in available or formulas.knows(name)]
    return [name for name in usual if name not in available or _has_values(profile, name)] or usual[:1] or available[:1]


def short_names(profile: Profile) -> dict[str, list[str]]:
    """Other names of the profile's metrics, by metric."""
    found: dict[str, list[str]] = {}
    for short, meant in _SHORT_NAMES.items():
        metric = next((name for name in meant if name in profile.metrics), None)
        if metric and short not in profile.metrics:
            found.setdefault(metric, []).append(short)
    return found


def columns_of(profile: Profile, names: Sequence[str], formulas: Formulas = NO_FORMULAS) -> list[Column]:
    """The columns of a tree: [n_nodes] values, with what ran below where metrics add up."""
    columns = [_column(name, profile, formulas) for name in names]
    return [replace(column, largest=_compared_magnitude(column, columns)) for column in columns]


def _compared_magnitude(column: Column, columns: Sequence[Column]) -> float | None:
    """That of the smallest column of those that are compared with this one; None when none are.

    The first column is compared with the phases that it is the sum of, if they are no less than a thousandth of it.
    """
    for endings in _COMPARED:
        is_whole = endings is REGIONS and column is columns[0]
        if is_whole or column.name.endswith(endings):
            compared = [other for other in columns if other.name.endswith(endings) and other.unit == column.unit]
            least = min((other.magnitude for other in compared if other.magnitude), default=None)
            return max(least, column.magnitude / 1000) if least and is_whole else least
    return None


def _column(name: str, profile: Profile, formulas: Formulas) -> Column:
    if name in _AVERAGES:
        time, count = (profile.inclusive(part).astype(np.float64) for part in _AVERAGES[name])
        average = np.divide(time, count, out=np.full(len(time), np.nan), where=count > 0)
        return Column(name, profile.metrics[_AVERAGES[name][0]].unit, MetricKind.PROPERTY, average, np.nan)
    if name not in profile.metrics:
        found = formulas.compute(profile, name)
        total = float(found.values[0]) if found.kind is MetricKind.INCLUSIVE else np.nan
        return Column(name, found.unit, found.kind, found.values, total, why_absent=found.why_absent)
    metric = profile.metrics[name]
    total = np.nan if metric.kind is MetricKind.PROPERTY else float(metric.own.sum())
    unit = "B" if name == "bytes" and not metric.unit else metric.unit
    known = metric.own[metric.has_value] if metric.kind is MetricKind.PROPERTY else metric.own
    is_whole = np.issubdtype(metric.own.dtype, np.integer) or bool((known == np.rint(known)).all())
    return Column(name, unit, metric.kind, _shown(profile, metric), total, is_whole)


def _shown(profile: Profile, metric: Metric) -> FloatArray:
    """Value shown at each node, [n_nodes]; NaN where a metric with optional values has none at or below the node."""
    values = profile.inclusive(metric.name).astype(np.float64)
    if metric.name in _EXTREMES:
        return profile.tree.largest_below(values)
    if metric.kind is MetricKind.INCLUSIVE and metric.counted is not None:
        values[profile.tree.sum_up(metric.counted.astype(np.int64)) == 0] = np.nan
    return values


def _has_values(profile: Profile, name: str) -> bool:
    return all(np.nan_to_num(profile.own(part)).any() for part in _AVERAGES.get(name, (name,)))


def _resolve(requested: str, available: Sequence[str], formulas: Formulas, profile: Profile) -> str:
    wanted = requested.strip().lower()
    by_lower_case = {name.lower(): name for name in available}
    without_unit = wanted.partition("(")[0].strip()
    for candidate in (wanted, without_unit, *_SHORT_NAMES.get(without_unit, ())):
        if candidate in by_lower_case:
            return by_lower_case[candidate]
        if formulas.knows(candidate):
            return candidate
    for begin, option in _ELSEWHERE.items():
        if any(name.startswith(begin) for name in (wanted, *_SHORT_NAMES.get(without_unit, ()))):
            raise UsageError(f"{requested.strip()!r} is not a metric of this view", hint=f"Try: bragg view {option}")
    if wanted.startswith("gpu_") and "gpu_time" not in by_lower_case:
        raise _no_gpu_times(requested.strip(), without_unit)
    computed = formulas.names(profile)
    short = (name for name, meant in _SHORT_NAMES.items() if not {*by_lower_case, *computed}.isdisjoint(meant))
    names = [*by_lower_case, *short, *computed]
    near = difflib.get_close_matches(wanted, names, n=_N_NEAREST, cutoff=0.5)
    some = [*available[:_N_NAMED], *["…"] * (len(available) > _N_NAMED)]
    found = f"Nearest: {', '.join(near)}" if near else f"It has: {', '.join(some)}"
    raise UsageError(f"this profile has no metric {requested.strip()!r}", hint=f"{found}; bragg view --list shows all")


def _no_gpu_times(requested: str, name: str) -> UsageError:
    """Why a metric of a GPU is not there, and which one was meant if there is none of this name."""
    known = [one for one in (*MEANINGS, *_AVERAGES) if one.startswith("gpu_")]
    near = [] if name in known else difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    absent, meant = (f"metric {requested!r}, nor ", f"Did you mean {near[0]}? ") if near else ("", "")
    hint = f"{meant}Why it has none: bragg doctor; time of the host: -m host_time"
    return UsageError(f"this profile has no {absent}GPU times", hint=hint)
