"""The answer to where the time went, in numbers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bragg.analyze.idle import idle_times
from bragg.errors import UsageError
from bragg.model import Profile
from bragg.model.answer import Answer, HotSpot, RoofShares
from bragg.model.host_time import own_work
from bragg.model.kernel_facts import KernelFacts

__all__ = ["answer"]

_N_HOTTEST = 3


def answer(profile: Profile, kernels: Sequence[KernelFacts]) -> Answer:
    """What took the time of a profile.

    Args:
        profile: A whole run.
        kernels: Its table of kernels.
    """
    try:
        metric = profile.main_metric
    except UsageError:
        return Answer(None, 0.0, (), 0, None, ())
    hottest = _hottest(profile, metric)
    return Answer(
        metric=metric,
        total=float(profile.total(metric)),
        hottest=tuple(hottest[:_N_HOTTEST]),
        n_others=max(len(hottest) - _N_HOTTEST, 0),
        roofs=_roofs(kernels),
        idle=idle_times(profile) if metric == "gpu_time" else (),
    )


def _hottest(profile: Profile, metric: str) -> list[HotSpot]:
    """Everything with own values, added up by kind and name; the largest first."""
    frames, own = profile.tree.frames, own_work(profile, metric)
    first: dict[tuple[int, str], int] = {}
    named_after = [
        first.setdefault(key, row) for row, key in enumerate(zip(frames.kind.tolist(), frames.name, strict=True))
    ]
    by_frame = np.bincount(np.array(named_after)[profile.tree.frame], weights=own, minlength=len(frames))
    total = float(profile.total(metric))
    order = np.argsort(-by_frame, kind="stable")
    return [
        HotSpot(row, float(by_frame[row]), float(by_frame[row]) / total) for row in order[by_frame[order] > 0].tolist()
    ]


def _roofs(kernels: Sequence[KernelFacts]) -> RoofShares | None:
    known = [kernel for kernel in kernels if kernel.bound and kernel.roof_ns is not None]
    if not known:
        return None
    total_ns = sum(kernel.time_ns for kernel in kernels)
    compute_ns = sum(kernel.time_ns for kernel in known if kernel.bound == "compute")
    memory_ns = sum(kernel.time_ns for kernel in known if kernel.bound == "memory")
    roof_ns = sum(kernel.roof_ns or 0.0 for kernel in known)
    return RoofShares(compute_ns / total_ns, memory_ns / total_ns, roof_ns / (compute_ns + memory_ns))
