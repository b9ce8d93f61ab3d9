"""Which of several GPUs decide how long a program takes: those that work nearly as long as the busiest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from bragg.analyze.causes.thresholds import AS_BUSY
from bragg.model import CallTree, TrackKind, TrackTable
from bragg.model.table import BoolArray, FloatArray, Int32Array


@dataclass(frozen=True)
class BoundingGpus:
    """The GPUs that decide.

    Attributes:
        ordinals: Their ordinals; None: all decide.
        count: How many, of all processes; at least 1.
        busiest: Ordinal of the busiest GPU.
        busy: Share of the wall time in which the busiest works; None: not known.
        others_busy: Share in which the busiest of the others works: no faster is the program without these.
    """

    ordinals: frozenset[int] | None
    count: int
    busiest: int = 0
    busy: float | None = None
    others_busy: float = 0.0

    def has(self, tree: CallTree) -> BoolArray:
        """Nodes whose work is theirs, or of a GPU that is not known: [n_nodes]."""
        return self.are_among(tree.frames.device[tree.frame])

    def are_among(self, devices: Int32Array) -> BoolArray:
        """Which of some ordinals, [n], are theirs, or negative: not known."""
        if self.ordinals is None:
            return np.ones(len(devices), np.bool_)
        found: BoolArray = (devices < 0) | np.isin(devices, list(self.ordinals))
        return found

    def mean_wait(self, idle_ns: FloatArray, wall_ns: float) -> FloatArray:
        """The mean of their idle time in each node: in all at most what the busiest of them waits.

        Args:
            idle_ns: Of all of them: [n_nodes].
            wall_ns: Wall time in which they waited.
        """
        mean_ns: FloatArray = idle_ns / self.count
        total_ns = float(mean_ns.sum())
        if self.count == 1 or self.busy is None or not total_ns:
            return mean_ns
        return mean_ns * min((1 - self.busy) * wall_ns / total_ns, 1.0)


def bounding_gpus(busy: Mapping[int, float], tracks: TrackTable, n_devices: int) -> BoundingGpus:
    """Which GPUs decide.

    Args:
        busy: By ordinal, the share of the wall time in which a GPU works; empty: not known.
        tracks: Of the profile.
        n_devices: How many GPUs worked, of all processes.
    """
    if not busy:
        return BoundingGpus(None, n_devices)
    busiest = max(busy, key=lambda device: busy[device])
    ordinals = frozenset(device for device, share in busy.items() if share >= (1 - AS_BUSY.value) * busy[busiest])
    is_theirs = (tracks.kind == TrackKind.GPU_STREAM) & np.isin(tracks.device, list(ordinals))
    streams = tracks.take(is_theirs)
    owners = set(zip(streams.unique_process.tolist(), streams.device.tolist(), strict=True))
    others_busy = max((share for device, share in busy.items() if device not in ordinals), default=0.0)
    return BoundingGpus(
        ordinals=ordinals if len(ordinals) < len(busy) else None,
        count=len(owners) or len(ordinals),
        busiest=busiest,
        busy=busy[busiest],
        others_busy=others_busy,
    )
