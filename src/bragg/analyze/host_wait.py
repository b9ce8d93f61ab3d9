"""Host time in which the host itself waits for the GPU: no GPU waits for it."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np

from bragg.model import Metric, MetricKind, Profile
from bragg.model.kernels.names import operator_name

HOST_WAIT = "host_wait"

# PyTorch's `synchronize` and `item`, and synchronizing calls of the GPU's API.
_WAITING = re.compile(r"(?:\w+\.)*synchronize|aten::_local_scalar_dense|cu\w*Synchronize\w*|cuMemcpyDtoH\w*")
_HOST_COPIES = ("copy HtoD", "copy DtoH")


def is_waiting(name: str) -> bool:
    """Whether a scope, operator or call of this name waits for the GPU."""
    return _WAITING.fullmatch(operator_name(name)) is not None


def with_host_wait(profile: Profile) -> Profile:
    """The profile with the metric `host_wait`, which adds up along call paths as `host_time` does, a part of it.

    Calls of the GPU's API have what they were measured to wait, and all of their time if they are known to wait. It is
    to be told before nodes are put together, while calls have names and copies of their own.
    """
    if HOST_WAIT in profile.metrics or "host_time" not in profile.metrics:
        return profile
    tree, names = profile.tree, profile.tree.frames.name
    waits = np.array([is_waiting(name) for name in names])[tree.frame]
    # A copy from or to ordinary memory of the host waits until all before it is done.
    waits[tree.parent[np.array([name in _HOST_COPIES for name in names])[tree.frame]]] = True
    measured_ns = profile.own("sync_time") if "sync_time" in profile.metrics else 0
    metric = Metric(HOST_WAIT, "ns", MetricKind.INCLUSIVE, np.where(waits, profile.own("host_time"), measured_ns))
    return replace(profile, metrics={**profile.metrics, HOST_WAIT: metric})
