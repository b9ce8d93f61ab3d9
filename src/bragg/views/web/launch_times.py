"""How long single launches took, for the page's table of kernels."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from bragg.analyze.kernel_facts import KernelFacts
from bragg.model import Profile
from bragg.views.text.labels import Labels

_SHARES = (0.5, 0.95)


def family_of(profile: Profile) -> Callable[[KernelFacts], str]:
    """What variants of a kernel have in common: the name without specialization, or what all are called on screen."""
    names, labels = profile.tree.frames.name, Labels(profile.tree.frames, with_device=False)
    return lambda kernel: labels.name(kernel.frame) if kernel.base == names[kernel.frame] else kernel.base


def percentiles(
    profile: Profile, kernels: Sequence[KernelFacts], name_of: Callable[[KernelFacts], str]
) -> dict[str, list[float | None]]:
    """The median and the 95th percentile of the launches of each name, ns; None: not all launches were kept."""
    number: dict[str, int] = {}
    row = np.array([number.setdefault(name_of(kernel), len(number)) for kernel in kernels], np.int64)
    count, shortest, longest = np.zeros(len(number)), np.full(len(number), np.inf), np.zeros(len(number))
    np.add.at(count, row, [kernel.count for kernel in kernels])
    np.minimum.at(shortest, row, [kernel.min_ns or 0.0 for kernel in kernels])
    np.maximum.at(longest, row, [np.inf if kernel.max_ns is None else kernel.max_ns for kernel in kernels])
    row_of_frame = np.full(len(profile.tree.frames), -1)
    row_of_frame[[kernel.frame for kernel in kernels]] = row
    launches = profile.durations.replace(frame=row_of_frame[profile.durations.frame])
    launches = launches.take(launches.frame >= 0)
    is_whole = (count > 0) & (launches.launches(len(number)) == count)
    # The middle of a bucket may lie outside of the launches in it.
    values = [np.clip(launches.quantiles(q, len(number)), shortest, longest) for q in _SHARES]
    return {name: [float(value[each]) if is_whole[each] else None for value in values] for name, each in number.items()}
