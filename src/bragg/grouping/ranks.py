"""The ranks of a job as rows: what each took in all."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bragg.model.metric import Metric, MetricKind
from bragg.model.profile import Profile
from bragg.model.tree import CallTree, FrameKind, FrameTable

_SHOWN = ("gpu_time", "host_time", "wait_time", "gpu_count", "worker_time")


def group_by_rank(profiles: Sequence[Profile], labels: Sequence[str]) -> Profile:
    """One row for each rank, with the totals of the metrics that ranks are compared by.

    Args:
        profiles: One of each rank, at least one.
        labels: What each is called.
    """
    first = profiles[0]
    root = first.tree.frames.take(first.tree.frame[:1])
    frames = root.concatenate([root, FrameTable.of_names(FrameKind.SCOPE, list(labels))])
    rows = np.arange(len(labels) + 1, dtype=np.int32)
    metrics = {}
    for name in _SHOWN:
        known = [profile for profile in profiles if name in profile.metrics]
        if known:
            totals = [profile.total(name) if name in profile.metrics else 0 for profile in profiles]
            metrics[name] = Metric(name, known[0].metric(name).unit, MetricKind.INCLUSIVE, np.array([0, *totals]))
    return Profile({}, CallTree(np.minimum(0, rows - 1), rows, frames), metrics)
