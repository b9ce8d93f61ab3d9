"""What became slower or faster between two recordings, and whether it exceeds a limit."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum

import numpy as np

from bragg.analyze.comparison import Comparison
from bragg.errors import UsageError
from bragg.model import CallTree, Metric, MetricKind, Profile
from bragg.model.difference import aligned
from bragg.model.regroup import fold_specializations
from bragg.model.table import FloatArray, Int64Array
from bragg.model.transform import flat, group_by_name

__all__ = ["By", "Gate", "compare"]

_COUNTS = {"gpu_time": "gpu_count", "gpu_bytes": "gpu_count", "host_time": "host_count", "marker_time": "marker_count"}


class By(Enum):
    """The rows of a comparison."""

    PATH = "path"
    """Call paths, wherever in a file a function stands and on whatever device a kernel ran."""
    KERNEL = "kernel"
    """Kernels, or functions of the host, wherever they were called from; specializations together."""
    SPECIALIZATION = "specialization"
    """Kernels, each specialization by itself."""


@dataclass(frozen=True)
class Gate:
    """How much more is allowed.

    Attributes:
        percent: Of the value before; growth by just that is allowed.
        floor: Growth up to this never fails, in the unit of the metric.
    """

    percent: float
    floor: float = 0.0

    def exceeded(self, comparison: Comparison) -> Int64Array:
        """The nodes that grew by more, the root among them, the largest growth first."""
        change = comparison.change
        nodes = np.append(0, comparison.rows)
        # Not shares: 0.29 * 100 is less than 29.
        is_larger = 100 * change[nodes] > self.percent * comparison.before[nodes]
        beyond = nodes[is_larger & (change[nodes] > self.floor)]
        worst_first: Int64Array = beyond[np.argsort(-change[beyond], kind="stable")]
        return worst_first


def compare(before: Profile, after: Profile, by: By, metric: str | None = None) -> Comparison:
    """Put the values of two profiles side by side.

    Args:
        before: The profile that counts as normal.
        after: The one to judge.
        by: What to compare.
        metric: Its name; None for GPU time, or host time where there is none.

    Raises:
        UsageError: A profile lacks the metric, or it does not add up.
    """
    name = metric or after.main_metric
    for profile in (before, after):
        if profile.metric(name).kind is MetricKind.PROPERTY:
            raise UsageError(f"{name} does not add up", hint="Compare another one with --metric")
    one, other = aligned(*(_shaped(_with_only(profile, name), by) for profile in (before, after)))
    before_values, after_values = (profile.inclusive(name).astype(np.float64) for profile in (one, other))
    return Comparison(
        metric=name,
        unit=other.metrics[name].unit,
        tree=one.tree,
        before=before_values,
        after=after_values,
        count_before=_counts(one, name),
        count_after=_counts(other, name),
        rows=_rows(one.tree, before_values, after_values),
    )


def _with_only(profile: Profile, name: str) -> Profile:
    kept = {key: metric for key, metric in profile.metrics.items() if key in (name, _COUNTS.get(name))}
    return Profile(profile.meta, profile.tree, kept)


def _shaped(profile: Profile, by: By) -> Profile:
    """The tree to compare, without what differs between runs of one program: lines and devices."""
    if by is By.KERNEL:
        profile = fold_specializations(profile)
    shaped = group_by_name(profile) if by is By.PATH else _flattened(profile)
    frames = shaped.tree.frames
    anywhere = frames.replace(line=np.zeros(len(frames)), device=np.full(len(frames), -1))
    return replace(shaped, tree=CallTree(shaped.tree.parent, shaped.tree.frame, anywhere))


def _flattened(profile: Profile) -> Profile:
    """What ran, as children of the root."""
    table = flat(profile)
    n_rows = len(table.frames)
    root = profile.tree.frames.take(profile.tree.frame[:1])
    parent = np.zeros(n_rows + 1, np.int32)
    parent[0] = -1
    tree = CallTree(parent, np.arange(n_rows + 1, dtype=np.int32), root.concatenate([root, table.frames]))
    metrics = {name: _below_root(metric) for name, metric in table.metrics.items()}
    return Profile(profile.meta, tree, metrics)


def _below_root(metric: Metric) -> Metric:
    # The root has no part of its own, also of metrics whose values of several nodes may be added.
    return replace(metric, kind=MetricKind.INCLUSIVE, own=np.append(np.zeros(1, metric.own.dtype), metric.own))


def _counts(profile: Profile, name: str) -> FloatArray:
    count = _COUNTS.get(name)
    if count not in profile.metrics:
        return np.full(len(profile.tree), np.nan)
    counted = profile.inclusive(count).astype(np.float64)
    return np.where(counted > 0, counted, np.nan) if count == "host_count" else counted


def _rows(tree: CallTree, before: FloatArray, after: FloatArray) -> Int64Array:
    """Nodes with a value, without those that only repeat the single one below them; the largest change first."""
    has_value = (before != 0) | (after != 0)
    inner = np.flatnonzero(has_value[1:]) + 1
    above = tree.parent[inner]
    n_below = np.bincount(above, minlength=len(tree))
    repeats = np.zeros(len(tree), np.bool_)
    same = (before[inner] == before[above]) & (after[inner] == after[above]) & (n_below[above] == 1)
    repeats[above[same]] = True
    rows = inner[~repeats[inner]]
    return rows[np.argsort(-np.abs(after[rows] - before[rows]), kind="stable")]
