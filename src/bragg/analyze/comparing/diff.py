"""What became slower or faster between two recordings, or two sets of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from enum import Enum
from itertools import pairwise

import numpy as np

from bragg.analyze.comparing.comparison import Comparison
from bragg.analyze.comparing.repeats import noise_of, spread_of
from bragg.errors import UsageError
from bragg.model import CallTree, Metric, MetricKind, Profile
from bragg.model.difference import aligned_all
from bragg.model.host_time import WAIT_TIME
from bragg.model.ids import ROOT
from bragg.model.regroup import fold_specializations
from bragg.model.table import FloatArray, Int64Array
from bragg.model.transform import flat, group_by_name

_COUNTS = {"gpu_time": "gpu_count", "gpu_bytes": "gpu_count", "host_time": "host_count", "marker_time": "marker_count"}


class By(Enum):
    """The rows of a comparison."""

    PATH = "path"
    """Call paths, wherever in a file a function stands and on whatever device a kernel ran."""
    KERNEL = "kernel"
    """Kernels, or functions of the host, wherever they were called from; specializations together."""
    SPECIALIZATION = "specialization"
    """Kernels, each specialization by itself."""


def compare(before: Profile, after: Profile, by: By, metric: str | None = None) -> Comparison:
    """Put the values of two profiles side by side: `compare_sets` of one run each."""
    return compare_sets([before], [after], by, metric)


def compare_sets(before: Sequence[Profile], after: Sequence[Profile], by: By, metric: str | None = None) -> Comparison:
    """Put the values of two sets of runs side by side.

    Args:
        before: Runs of the program that counts as normal, at least one.
        after: Runs of the one to judge, at least one.
        by: What to compare.
        metric: Its name; None for GPU time, or host time where there is none.

    Raises:
        UsageError: A profile lacks the metric, or it does not add up.
    """
    name = metric or after[-1].main_metric
    if name == WAIT_TIME:
        before, after = with_waiting(before), with_waiting(after)
    for profile in (*before, *after):
        if profile.metric(name).kind is MetricKind.PROPERTY:
            raise UsageError(f"{name} does not add up", hint="Compare another one with --metric")
    runs = aligned_all([_shaped(_with_only(profile, name), by) for profile in in_turn(before, after)])
    values = np.array([profile.inclusive(name).astype(np.float64) for profile in runs])
    values[:, ROOT] = [whole_of(profile, name) for profile in runs]
    counts = [_counts(profile, name) for profile in runs]
    unit, n_before, is_paired = runs[-1].metrics[name].unit, len(before), are_alternating(before, after)
    spread = spread_of(values[:n_before], values[n_before:], noise_of(name, unit), paired=is_paired)
    return Comparison(
        metric=name,
        unit=unit,
        tree=runs[-1].tree,
        spread=spread,
        n_before=n_before,
        n_after=len(after),
        is_paired=is_paired,
        count_before=_mean_count(counts[:n_before]),
        count_after=_mean_count(counts[n_before:]),
        rows=_rows(runs[-1].tree, spread.before, spread.after),
    )


def whole_of(profile: Profile, name: str) -> float:
    """A metric over the whole run; of one that does not count what is below, the sum over all call paths."""
    is_exclusive = profile.metric(name).kind is MetricKind.EXCLUSIVE
    return float(np.nansum(profile.own(name))) if is_exclusive else float(profile.total(name))


def with_waiting(runs: Sequence[Profile]) -> list[Profile]:
    """The runs, those whose threads were sampled and never waited with no time of waiting on every call path."""
    found = []
    for run in runs:
        if WAIT_TIME not in run.metrics and "host_time" in run.metrics:
            none = Metric(WAIT_TIME, "ns", MetricKind.INCLUSIVE, np.zeros(len(run.tree), np.int64))
            run = replace(run, metrics={**run.metrics, WAIT_TIME: none})
        found.append(run)
    return found


def in_turn(before: Sequence[Profile], after: Sequence[Profile]) -> list[Profile]:
    """The runs of both sets, each by when it began, those before first."""
    return [*sorted(before, key=_began_ns), *sorted(after, key=_began_ns)]


def are_alternating(before: Sequence[Profile], after: Sequence[Profile]) -> bool:
    """Whether as many runs of both sets, two at least, were recorded in turn: each pair before the next one began."""
    began_ns = [_began_ns(profile) for profile in in_turn(before, after)]
    n_pairs = len(before)
    if len(after) != n_pairs or n_pairs < 2 or 0 in began_ns:
        return False
    pairs = list(zip(began_ns[:n_pairs], began_ns[n_pairs:], strict=True))
    return all(max(pair) < min(following) for pair, following in pairwise(pairs))


def _began_ns(profile: Profile) -> int:
    return profile.run.started_ns or 0


def _mean_count(counts: list[FloatArray]) -> FloatArray:
    """Mean over runs; NaN where no run counted: float64 [n_nodes]."""
    stacked = np.array(counts)
    n_counted = (~np.isnan(stacked)).sum(axis=0)
    mean: FloatArray = np.where(n_counted, np.nansum(stacked, axis=0) / np.maximum(n_counted, 1), np.nan)
    return mean


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
