"""The processes of a run that stand in one profile: the training process and the workers of its data loaders."""

from __future__ import annotations

import numpy as np

from bragg.errors import UsageError
from bragg.grouping.workers import WORKER_METRICS, WORKERS
from bragg.model.ids import ROOT
from bragg.model.metric import Metric, MetricKind
from bragg.model.profile import Profile
from bragg.model.tree import CallTree, FrameKind, FrameTable

_MAIN = "main process"
_SHOWN = ("host_time", "wait_time", "gpu_time")


def group_by_process(profile: Profile) -> Profile:
    """One row for each process: `host_time`, `wait_time` of all, `gpu_time` of the main one.

    Raises:
        UsageError: There is one process.
    """
    tree = profile.tree
    names = [tree.frames.name[frame] for frame in tree.frame]
    above = [node for node in tree.children(ROOT) if names[node] == WORKERS and profile.run.workers]
    workers = [node for scope in above for node in tree.children(scope)]
    if not workers:
        hint = "Workers of PyTorch's data loaders are part of a profile; other processes have profiles of their own"
        raise UsageError("this profile is of one process", hint=hint)
    run = profile.run
    titles = [f"{_MAIN}, pid {run.pid}"]
    numbered = zip(workers, run.workers, strict=True)
    titles += [f"data loader {names[node].replace('.', ' ')}, pid {row.pid}" for node, row in numbered]
    root = tree.frames.take(tree.frame[:1])
    frames = root.concatenate([root, FrameTable.of_names(FrameKind.SCOPE, titles)])
    rows = np.arange(len(titles) + 1, dtype=np.int32)
    metrics = {}
    for name in _SHOWN:
        if name in profile.metrics:
            of_workers = next((new for old, new in WORKER_METRICS.items() if old == name), "")
            inclusive = profile.inclusive(of_workers) if of_workers in profile.metrics else np.zeros(len(tree))
            own = np.array([0, profile.total(name), *(inclusive[node] for node in workers)])
            metrics[name] = Metric(name, profile.metric(name).unit, MetricKind.INCLUSIVE, own)
    return Profile(profile.meta, CallTree(np.minimum(0, rows - 1), rows, frames), metrics)
