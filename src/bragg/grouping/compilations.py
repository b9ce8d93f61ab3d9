"""Time in which a thread waits for the compiler: it is the work of a compilation, which other threads do."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from bragg.grouping.hlo_names import COMPILE
from bragg.model import Profile
from bragg.model.host_time import WAIT_TIME, waiting_nodes
from bragg.model.transform import innermost


def with_compiling_as_work(profile: Profile) -> Profile:
    """The profile with what is waited in compilations as their own host time; the same one without any."""
    tree, waits = profile.tree, profile.metrics.get(WAIT_TIME)
    if waits is None or "host_time" not in profile.metrics:
        return profile
    is_compilation = np.array([name.startswith(COMPILE) for name in tree.frames.name], np.bool_)[tree.frame]
    around = innermost(tree, np.where(is_compilation, np.arange(len(tree)), -1))
    waiting = np.flatnonzero(waiting_nodes(tree) & (around > 0))
    if not len(waiting):
        return profile
    host_time = profile.metrics["host_time"]
    own_ns = host_time.own.copy()
    np.add.at(own_ns, around[waiting], own_ns[waiting])
    own_ns[waiting] = 0
    metrics = {
        "host_time": replace(host_time, own=own_ns),
        WAIT_TIME: replace(waits, own=np.where(around > 0, 0, waits.own)),
    }
    return replace(profile, metrics={**profile.metrics, **metrics})
