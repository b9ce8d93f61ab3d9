"""Several profiles as one: ranks of a job, processes of a run, repetitions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from typing import Any

import numpy as np

from bragg.errors import UsageError
from bragg.model.metric import Metric, MetricKind
from bragg.model.profile import Profile
from bragg.model.regroup import regroup
from bragg.model.table import Int32Array
from bragg.model.tree import CallTree, FrameTable

__all__ = ["merge"]


def merge(profiles: Sequence[Profile]) -> Profile:
    """All profiles as one: equal call paths become one node, tracks stay apart.

    Associative, and commutative up to the order of rows. `meta` keeps what all profiles agree on; the whole meta of
    each recording is listed under `merged`.

    Raises:
        UsageError: There is no profile, or two give one metric different units.
    """
    if not profiles:
        raise UsageError("there is no profile to merge")
    return reduce(_merge_two, profiles)


def _merge_two(one: Profile, other: Profile) -> Profile:
    frames, frame_of_other = _unite_frames(one.tree.frames, other.tree.frames)
    n_one = len(one.tree)
    parent = np.concatenate([one.tree.parent, other.tree.parent + n_one])
    frame = np.concatenate([one.tree.frame, frame_of_other[other.tree.frame]])
    second_root = np.arange(len(parent)) == n_one
    parent[n_one] = 0
    side_by_side = replace(
        one,
        meta=_merge_meta(one.meta, other.meta),
        tree=CallTree(parent, frame, frames),
        metrics=_concatenate_metrics(one, other),
        tracks=one.tracks.concatenate([one.tracks, other.tracks]),
        slices=one.slices.concatenate([one.slices, _shift_slices(one, other)]),
        counters=one.counters.concatenate(
            [one.counters, other.counters.replace(track=other.counters.track + len(one.tracks))]
        ),
        kernels=one.kernels.concatenate(
            [one.kernels, other.kernels.replace(frame=frame_of_other[other.kernels.frame])]
        ).combined(),
        inputs=one.inputs.concatenate(
            [one.inputs, other.inputs.replace(node=other.inputs.node + n_one, producer=other.inputs.producer + n_one)]
        ),
        durations=one.durations.concatenate(
            [one.durations, other.durations.replace(frame=frame_of_other[other.durations.frame])]
        ).combined(),
        findings=one.findings + [replace(f, node=None if f.node is None else f.node + n_one) for f in other.findings],
        sources={**other.sources, **one.sources},
    )
    return regroup(side_by_side.tree, folded=second_root).apply(side_by_side)


def _unite_frames(one: FrameTable, other: FrameTable) -> tuple[FrameTable, Int32Array]:
    """Both frame tables as one without repetition, and the new row of each frame of `other`."""
    both = FrameTable.concatenate([one, other])
    first: dict[tuple[int, str, str, int, int], int] = {}
    keys = zip(both.kind.tolist(), both.name, both.file, both.line.tolist(), both.device.tolist(), strict=True)
    same = np.array([first.setdefault(key, index) for index, key in enumerate(keys)], np.int32)
    rows = np.concatenate([np.arange(len(one)), np.setdiff1d(same[len(one) :], np.arange(len(one)))])
    new_row = np.zeros(len(both), np.int32)
    new_row[rows] = np.arange(len(rows))
    return both.take(rows), new_row[same[len(one) :]]


def _shift_slices(one: Profile, other: Profile) -> Any:
    """The slices of `other`, numbered after the nodes, tracks and correlation ids of `one`."""
    correlation = other.slices.correlation
    last = int(one.slices.correlation.max(initial=0))
    return other.slices.replace(
        node=other.slices.node + len(one.tree),
        track=other.slices.track + len(one.tracks),
        correlation=np.where(correlation == 0, 0, correlation + last),
    )


def _concatenate_metrics(one: Profile, other: Profile) -> dict[str, Metric]:
    names = list(dict.fromkeys([*one.metrics, *other.metrics]))
    return {name: _concatenate_metric(name, one, other) for name in names}


def _concatenate_metric(name: str, one: Profile, other: Profile) -> Metric:
    found = [profile.metrics[name] for profile in (one, other) if name in profile.metrics]
    if len({(metric.unit, metric.kind, metric.combine) for metric in found}) > 1:
        raise UsageError(f"the profiles disagree on the unit or the kind of metric {name!r}")
    missing = np.nan if found[0].kind is MetricKind.PROPERTY else 0
    columns = [
        profile.metrics[name].own
        if name in profile.metrics
        else np.full(len(profile.tree), missing, found[0].own.dtype)
        for profile in (one, other)
    ]
    if all(metric.counted is None for metric in found):
        return found[0].with_own(np.concatenate(columns))
    counted = [
        profile.metrics[name].has_value if name in profile.metrics else np.zeros(len(profile.tree), np.bool_)
        for profile in (one, other)
    ]
    return found[0].with_own(np.concatenate(columns), np.concatenate(counted))


def _merge_meta(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    recordings = [recording for meta in (one, other) for recording in meta.get("merged", [meta])]
    agreed = {key: value for key, value in one.items() if key in other and other[key] == value and key != "merged"}
    return {**agreed, "merged": recordings}
