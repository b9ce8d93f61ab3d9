from __future__ import annotations

from dataclasses import replace

import numpy as np

from bragg.analyze.kernel_facts import kernel_facts
from bragg.model import DurationTable, Profile
from bragg.model.durations import buckets_of
from bragg.views.web.launch_times import family_of, percentiles
from tests.support.profiles import profile_from_text


def timed(times_ns: list[int]) -> Profile:
    """Two variants of one kernel; `times_ns` are launches of the first, the second was launched once for 64 ns."""
    profile = profile_from_text("root\n  mm<B=8 w4 s3> 96ns x2 @0\n  mm<B=16 w4 s3> 64ns x1 @0")
    first, second = (profile.tree.frames.name.index(name) for name in ("mm<B=8 w4 s3>", "mm<B=16 w4 s3>"))
    frame = np.array([first] * len(times_ns) + [second], np.int32)
    times = np.array([*times_ns, 64])
    return replace(
        profile, durations=DurationTable(frame, buckets_of(times), np.ones_like(times), np.zeros_like(times))
    )


def test_percentiles_of_a_family_are_those_of_all_its_launches() -> None:
    profile = timed([32, 64])
    kernels = kernel_facts(profile)
    assert percentiles(profile, kernels, family_of(profile)) == {"mm": [65.5, 65.5]}
    names = profile.tree.frames.name
    assert percentiles(profile, kernels, lambda kernel: names[kernel.frame]) == {
        "mm<B=8 w4 s3>": [32.5, 65.5],
        "mm<B=16 w4 s3>": [65.5, 65.5],
    }


def test_percentiles_need_every_launch() -> None:
    profile = timed([32])
    assert percentiles(profile, kernel_facts(profile), family_of(profile)) == {"mm": [None, None]}
    assert percentiles(profile, [], family_of(profile)) == {}


def test_percentiles_are_between_the_shortest_and_the_longest_launch() -> None:
    profile = timed([32, 64])
    kernels = [replace(kernel, max_ns=64.0) for kernel in kernel_facts(profile)]
    assert percentiles(profile, kernels, family_of(profile)) == {"mm": [64.0, 64.0]}
    kernels = [replace(kernel, min_ns=66.0, max_ns=70.0) for kernel in kernel_facts(profile)]
    assert percentiles(profile, kernels, family_of(profile)) == {"mm": [66.0, 66.0]}
