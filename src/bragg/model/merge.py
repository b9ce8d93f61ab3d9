"""Several profiles as one: ranks of a job, processes of a run, repetitions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from bragg.errors import UsageError
from bragg.model.meta.run import Run
from bragg.model.metric import Metric, MetricKind
from bragg.model.profile import Profile
from bragg.model.regroup import Regrouping, regroup
from bragg.model.table import BoolArray, Int32Array, Int64Array
from bragg.model.trace import SliceTable
from bragg.model.tree import CallTree, FrameTable


@dataclass(frozen=True, eq=False)
class Merged:
    """Profiles as one, and where the parts of it are from.

    Attributes:
        profile: All of them; metrics are combined.
        parts: What was merged, in order.
        node_of: int32 [n_nodes of the part] for each part: the node of `profile` that each of its nodes became.
    """

    profile: Profile
    parts: tuple[Profile, ...]
    node_of: tuple[Int32Array, ...]

    @property
    def ranks(self) -> list[int | None]:
        """The rank of each part; None: it has none."""
        return [part.run.rank for part in self.parts]

    def metric(self, name: str, part: int) -> Metric:
        """The values that one part has of a metric, over the nodes of the merged profile.

        Raises:
            UsageError: It has no such metric.
        """
        return self.parts[part].metric(name).gather(self.node_of[part], len(self.profile.tree))


def merge(profiles: Sequence[Profile]) -> Profile:
    """All profiles as one: equal call paths become one node, tracks stay apart.

    Associative, and commutative up to the order of rows. `meta` keeps what all profiles agree on; the whole meta of
    each recording is listed under `merged`.

    Raises:
        UsageError: There is no profile, or two give one metric different units.
    """
    return merge_with_parts(profiles).profile


def merge_with_parts(profiles: Sequence[Profile]) -> Merged:
    """As `merge`, and where each part went: whose values of a metric are whose.

    Raises:
        UsageError: There is no profile, or two give one metric different units.
    """
    if not profiles:
        raise UsageError("there is no profile to merge")
    if len(profiles) == 1:
        return Merged(profiles[0], tuple(profiles), (np.arange(len(profiles[0].tree), dtype=np.int32),))
    side_by_side = _SideBySide(profiles)
    regrouping = side_by_side.regrouping
    node_of = np.split(regrouping.target, side_by_side.first_node[1:])
    return Merged(regrouping.apply(side_by_side.profile), tuple(profiles), tuple(node_of))


class _SideBySide:
    """Profiles one after another in one, each with a root of its own below the first one's."""

    def __init__(self, profiles: Sequence[Profile]) -> None:
        self._profiles = profiles
        self.first_node = _firsts([len(profile.tree) for profile in profiles])
        self._first_track = _firsts([len(profile.tracks) for profile in profiles])
        self._frames, self._frame_of = _unite_frames([profile.tree.frames for profile in profiles])

    @cached_property
    def _tree(self) -> CallTree:
        parents = [profile.tree.parent + first for profile, first in self._with(self.first_node)]
        frames = [row[profile.tree.frame] for profile, row in zip(self._profiles, self._frame_of, strict=True)]
        parent = np.concatenate(parents)
        parent[self.first_node] = 0
        parent[0] = -1
        return CallTree(parent, np.concatenate(frames), self._frames)

    @property
    def regrouping(self) -> Regrouping:
        folded = np.zeros(len(self._tree), np.bool_)
        folded[self.first_node[1:]] = True
        return regroup(self._tree, folded=folded)

    @property
    def profile(self) -> Profile:
        profiles, first = self._profiles, self._profiles[0]
        frame_of = list(zip(profiles, self._frame_of, strict=True))
        sources: dict[str, str] = {}
        for profile in reversed(profiles):
            sources.update(profile.sources)
        return replace(
            first,
            meta=_merge_meta([profile.meta for profile in profiles]),
            tree=self._tree,
            metrics={name: self._metric(name) for name in dict.fromkeys(n for each in profiles for n in each.metrics)},
            tracks=first.tracks.concatenate([profile.tracks for profile in profiles]),
            slices=self._slices(),
            counters=first.counters.concatenate(
                [
                    profile.counters.replace(track=profile.counters.track + shift)
                    for profile, shift in self._with(self._first_track)
                ]
            ),
            kernels=first.kernels.concatenate(
                [each.kernels.replace(frame=row[each.kernels.frame]) for each, row in frame_of]
            ).combined(),
            durations=first.durations.concatenate(
                [each.durations.replace(frame=row[each.durations.frame]) for each, row in frame_of]
            ).combined(),
            inputs=first.inputs.concatenate(
                [
                    profile.inputs.replace(node=profile.inputs.node + shift, producer=profile.inputs.producer + shift)
                    for profile, shift in self._with(self.first_node)
                ]
            ),
            idle=first.idle.concatenate(
                [
                    profile.idle.replace(node=profile.idle.node + shift, process=profile.idle.process + before)
                    for (profile, shift), before in zip(
                        self._with(self.first_node), _processes_before(profiles), strict=True
                    )
                ]
            ),
            carried=[
                finding.moved(shift.__add__)
                for profile, shift in self._with(self.first_node)
                for finding in profile.carried
            ],
            sources=sources,
        )

    def _slices(self) -> SliceTable:
        """All slices, each column copied once; correlation ids of each profile follow those of the one before."""
        profiles = self._profiles
        last_ids = np.cumsum([0, *(int(profile.slices.correlation.max(initial=0)) for profile in profiles)])
        return SliceTable(
            start_ns=np.concatenate([profile.slices.start_ns for profile in profiles]),
            duration_ns=np.concatenate([profile.slices.duration_ns for profile in profiles]),
            node=np.concatenate([profile.slices.node + first for profile, first in self._with(self.first_node)]),
            track=np.concatenate([profile.slices.track + first for profile, first in self._with(self._first_track)]),
            correlation=np.concatenate(
                [
                    np.where(profile.slices.correlation == 0, 0, profile.slices.correlation + last)
                    for profile, last in self._with(last_ids[:-1])
                ]
            ),
        )

    def _metric(self, name: str) -> Metric:
        found = [profile.metrics[name] for profile in self._profiles if name in profile.metrics]
        if len({(metric.unit, metric.kind, metric.combine) for metric in found}) > 1:
            raise UsageError(f"the profiles disagree on the unit or the kind of metric {name!r}")
        missing = np.nan if found[0].kind is MetricKind.PROPERTY else 0
        own, counted = [], []
        for profile in self._profiles:
            metric = profile.metrics.get(name)
            n_nodes = len(profile.tree)
            own.append(np.full(n_nodes, missing, found[0].own.dtype) if metric is None else metric.own)
            counted.append(_has_value(metric, n_nodes))
        is_counted = any(metric.counted is not None for metric in found)
        return found[0].with_own(np.concatenate(own), np.concatenate(counted) if is_counted else None)

    def _with(self, firsts: Int64Array) -> list[tuple[Profile, Any]]:
        return list(zip(self._profiles, firsts.astype(np.int32), strict=True))


def _has_value(metric: Metric | None, n_nodes: int) -> BoolArray:
    return np.zeros(n_nodes, np.bool_) if metric is None else metric.has_value


def _firsts(lengths: Sequence[int]) -> Int64Array:
    """Where each part begins, one after another."""
    return np.cumsum([0, *lengths[:-1]], dtype=np.int64)


def _unite_frames(tables: Sequence[FrameTable]) -> tuple[FrameTable, list[Int32Array]]:
    """All frame tables as one without repetition, and the new rows of each one's frames."""
    together = FrameTable.concatenate(tables)
    first: dict[tuple[int, str, str, int, int], int] = {}
    keys = zip(
        together.kind.tolist(),
        together.name,
        together.file,
        together.line.tolist(),
        together.device.tolist(),
        strict=True,
    )
    same = np.array([first.setdefault(key, row) for row, key in enumerate(keys)], np.int64)
    rows, new_row = np.unique(same, return_inverse=True)
    ends = np.cumsum([len(table) for table in tables])[:-1]
    return together.take(rows), np.split(new_row.reshape(-1).astype(np.int32), ends)


def _merge_meta(metas: Sequence[dict[str, Any]]) -> dict[str, Any]:
    first, *others = metas
    agreed = {
        key: value
        for key, value in first.items()
        if key != "merged" and all(key in other and other[key] == value for other in others)
    }
    return {**agreed, "merged": [recording for meta in metas for recording in Run(meta).recording_metas]}


def _processes_before(profiles: Sequence[Profile]) -> list[int]:
    """The first number of each profile's processes in the idle table of all."""
    n_processes = [int(profile.idle.process.max(initial=0)) + 1 for profile in profiles]
    return [sum(n_processes[:row]) for row in range(len(profiles))]
