"""Kernels that two recordings launched alike: what they changed by is not the doing of the program."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter

import numpy as np

from bragg.analyze.weighted_median import weighted_median
from bragg.model import Profile

_N_KERNELS, _N_LAUNCHES = 5, 20
_LEAST_CHANGE = 0.08
_LEAST_SHARE = 0.1  # of the GPU time of either recording
_ALIKE, _SHARE_ALIKE = 0.1, 0.7  # of these kernels' time, how much has changed by the same


@dataclass(frozen=True)
class SameKernels:
    """How the times of launches changed that should have stayed.

    Attributes:
        count: How many kernels changed alike.
        change: Of the time of a launch, the median weighted by time: 0.1 for 10 % longer.
    """

    count: int
    change: float


def same_kernels(before: Sequence[Profile], after: Sequence[Profile]) -> SameKernels | None:
    """The change of kernels of the same name that each side launched with one shape, if most changed by as much.

    Returns:
        None where they took about as long, changed each by its own measure, or are few: at least 5 kernels of 20
        launches, a tenth of the GPU time, of which 70 % changed by the median within 10 %, and that by 8 %.
    """
    old, new = _launches(before), _launches(after)
    pairs = [(old[key], new[key]) for key in old.keys() & new.keys()]
    pairs = [pair for pair in pairs if all(launches >= _N_LAUNCHES for launches, _ in pair)]
    if len(pairs) < _N_KERNELS:
        return None
    launches, took_ns = np.moveaxis(np.array(pairs), 2, 0)
    least_ns = took_ns.min(axis=1)
    before_ns, after_ns = (took_ns / launches).T
    ratio = after_ns / before_ns
    median = weighted_median(ratio, least_ns)
    is_alike = np.abs(ratio - median) <= _ALIKE * median
    if (
        abs(median - 1) < _LEAST_CHANGE
        or is_alike.sum() < _N_KERNELS
        or least_ns[is_alike].sum() < _SHARE_ALIKE * least_ns.sum()
        or least_ns.sum()
        < _LEAST_SHARE * min(sum(profile.total("gpu_time") for profile in side) for side in (before, after))
    ):
        return None
    return SameKernels(int(is_alike.sum()), median - 1)


def _launches(profiles: Sequence[Profile]) -> dict[tuple[object, ...], tuple[float, float]]:
    """By kernel and the one shape it was launched with, how often that was, and what it took, ns."""
    found: dict[tuple[object, ...], tuple[float, float]] = defaultdict(lambda: (0.0, 0.0))
    for profile in profiles:
        if not {"gpu_time", "gpu_count"} <= profile.metrics.keys():
            continue
        frame, n_frames = profile.tree.frame, len(profile.tree.frames)
        took_ns = np.bincount(frame, profile.own("gpu_time"), n_frames)
        count = np.bincount(frame, profile.own("gpu_count"), n_frames)
        for kernel, key in _shapes(profile):
            launches, ns = found[key]
            found[key] = (launches + count[kernel], ns + took_ns[kernel])
    return found


def _shapes(profile: Profile) -> Iterator[tuple[int, tuple[object, ...]]]:
    kernels, frames = profile.kernels.combined(), profile.tree.frames
    columns = [getattr(kernels, name).tolist() for name in kernels.columns() if name != "count"]
    rows = sorted(zip(*columns, strict=True))
    for frame, of_frame in groupby(rows, itemgetter(0)):
        shape, *others = of_frame
        if not others:
            yield frame, (frames.name[frame], *shape[1:])
