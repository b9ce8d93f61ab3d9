"""Workers of a data loader: processes that belong to a training process, in whose profile they stand.

Their time is `worker_time`, so that `host_time` stays what the training process did: most of the time of a worker runs
beside it, and more of it is no slowdown.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from bragg.model.merge import merge
from bragg.model.meta.completeness import completeness_of
from bragg.model.profile import Profile
from bragg.model.regroup import regroup
from bragg.model.table import BoolArray
from bragg.model.transform import outermost, with_ancestors
from bragg.model.tree import CallTree, FrameKind, FrameTable

WORKERS = "data loader workers"
"""The scope below which all workers of a process stand, each a scope of its own."""
WORKER_TIME = "worker_time"
WORKER_METRICS = {"host_time": WORKER_TIME, "wait_time": "worker_wait", "host_count": "worker_count"}
_LOOP = ("_worker_loop", "torch/utils/data/_utils/worker.py")
_N_ABOVE = 2  # the root, and the scope of all workers


def is_loader_worker(profile: Profile) -> bool:
    """Whether a profile is that of a worker of PyTorch's data loaders, and nothing is lost when it has no file."""
    is_complete = completeness_of(profile.meta).word == "complete"
    return is_complete and not profile.measured("gpu_time") and bool(_loops(profile.tree).any())


def _loops(tree: CallTree) -> BoolArray:
    """Nodes of the function that a worker runs: [n_nodes]."""
    name, file = _LOOP
    rows = zip(tree.frames.name, tree.frames.file, strict=True)
    return np.array([each == name and path.endswith(file) for each, path in rows], np.bool_)[tree.frame]


def with_workers(profile: Profile, workers: Sequence[Profile]) -> Profile:
    """A profile with the workers that it started, below a scope of their own.

    Args:
        profile: Of the training process, without a timeline.
        workers: Profiles for which `is_loader_worker` is true, in the order of their beginning.
    """
    parts = [_as_scope(worker, number) for number, worker in enumerate(workers, 1)]
    merged = merge([profile, *parts])
    return replace(merged, meta={**profile.meta, "workers": [_facts(worker) for worker in workers]})


def _facts(worker: Profile) -> dict[str, Any]:
    run = worker.run
    return {"pid": run.pid, "started_ns": run.started_ns, "stopped_ns": run.ended_ns}


def _as_scope(worker: Profile, number: int) -> Profile:
    """What a worker ran, from the loop of workers on, below its scope; its metrics are those of workers."""
    loops = outermost(worker.tree, _loops(worker.tree))
    above = with_ancestors(worker.tree, loops) & ~loops
    above[0] = False
    worker = regroup(worker.tree, folded=above).apply(worker)
    tree, n_old = worker.tree, len(worker.tree.frames)
    scopes = FrameTable.of_names(FrameKind.SCOPE, [WORKERS, f"worker.{number}"])
    frames = scopes.concatenate([tree.frames, scopes])
    # The worker's root becomes its scope, below a new root and the scope of all workers.
    frame = np.concatenate([tree.frame[:1], [n_old, n_old + 1], tree.frame[1:]]).astype(np.int32)
    parent = np.concatenate([[-1, 0, 1], tree.parent[1:] + _N_ABOVE]).astype(np.int32)
    metrics = {}
    for name, new_name in WORKER_METRICS.items():
        if name in worker.metrics:
            old = worker.metrics[name]
            own = np.concatenate([np.zeros(_N_ABOVE, old.own.dtype), old.own])
            metrics[new_name] = replace(old, name=new_name, own=own, counted=None)
    return Profile({}, CallTree(parent, frame, frames), metrics, sources=worker.sources)
