"""One metric over the ranks of a job: mean, largest and smallest with their ranks, imbalance; for each call path.

The values of each rank are a metric of its own in the profile of all ranks (`gpu_time@3`), so that they stay right when
nodes are folded, filtered or added up: extremes are taken last.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from bragg.errors import UsageError
from bragg.model import Metric, MetricKind, Profile
from bragg.model.merge import Merged
from bragg.model.table import FloatArray, Int64Array

MEAN = "_mean"
"""What the name of the mean of a metric ends with."""
_OF_RANK = "@"


@dataclass(frozen=True, eq=False)
class RankSpread:
    """The values of ranks at each node, [n_nodes] each.

    Attributes:
        mean: Over all ranks; one that did not come here counts as 0.
        largest: Of the worst rank.
        worst: Its number; of several the lowest.
        smallest: Of the best rank.
        best: Its number; of several the lowest.
        imbalance: largest / mean - 1; NaN where the mean is 0.
    """

    mean: FloatArray
    largest: FloatArray
    worst: Int64Array
    smallest: FloatArray
    best: Int64Array
    imbalance: FloatArray


def imbalance_of(values: FloatArray) -> FloatArray:
    """Max / mean - 1 over the first axis, [n_ranks, ...] to [...]; NaN where the mean is 0."""
    mean = values.mean(axis=0)
    ratio: FloatArray = np.divide(values.max(axis=0), mean, out=np.full(mean.shape, np.nan), where=mean != 0)
    return ratio - 1


def on_one_device(profile: Profile) -> Profile:
    """A profile whose only GPU is called 0, so that its kernels are those of ranks that call their GPU otherwise."""
    frames = profile.tree.frames
    used = np.unique(frames.device[frames.device >= 0])
    if len(used) != 1 or used[0] == 0:
        return profile
    tree = replace(profile.tree, frames=frames.replace(device=np.minimum(frames.device, 0)))
    return replace(profile, tree=tree)


def with_rank_values(merged: Merged, numbers: Sequence[int], name: str) -> Profile:
    """The profile of all ranks with the values that each has of a metric; of all that add up the mean as `<name>_mean`.

    Args:
        merged: The ranks.
        numbers: Number of each part.
        name: A metric whose values add up.

    Raises:
        UsageError: It does not add up.
    """
    whole = merged.profile.metric(name)
    if whole.kind is MetricKind.PROPERTY:
        raise UsageError(f"{name} does not add up over ranks", hint="Look at one rank: --rank worst")
    n_nodes = len(merged.profile.tree)
    found = {
        f"{name}{_OF_RANK}{number}": _named(merged.metric(name, part), f"{name}{_OF_RANK}{number}")
        if name in merged.parts[part].metrics
        else Metric(f"{name}{_OF_RANK}{number}", whole.unit, whole.kind, np.zeros(n_nodes, np.int64))
        for part, number in enumerate(numbers)
    }
    means = {
        f"{each.name}{MEAN}": Metric(f"{each.name}{MEAN}", each.unit, each.kind, each.own / len(numbers))
        for each in merged.profile.metrics.values()
        if each.kind is not MetricKind.PROPERTY
    }
    return replace(merged.profile, metrics={**merged.profile.metrics, **means, **found})


def spread_of(profile: Profile, name: str) -> RankSpread:
    """What the ranks have of a metric, at and below each node.

    Args:
        profile: What `with_rank_values` returned, or a transform of it.
        name: The metric.

    Raises:
        UsageError: The profile has no values of ranks.
    """
    begin = f"{name}{_OF_RANK}"
    names = [metric for metric in profile.metrics if metric.startswith(begin)]
    if not names:
        raise UsageError(f"this profile has no values of ranks for {name!r}")
    numbers = np.array([int(metric.removeprefix(begin)) for metric in names])
    values = np.array([profile.inclusive(metric) for metric in names], np.float64)
    return RankSpread(
        values.mean(axis=0),
        values.max(axis=0),
        numbers[values.argmax(axis=0)],
        values.min(axis=0),
        numbers[values.argmin(axis=0)],
        imbalance_of(values),
    )


def _named(metric: Metric, name: str) -> Metric:
    return replace(metric, name=name, counted=None)
