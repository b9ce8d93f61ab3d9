"""The first batch of a DataLoader, for which its workers start."""

from __future__ import annotations

import numpy as np

from bragg.analyze.causes.host_parts import compiling
from bragg.analyze.wall.step_times import first_call_ns, step_times
from bragg.errors import UsageError
from bragg.grouping.regions import REGIONS, group_by_region
from bragg.model import Profile

_DATA, _STEP = "data", "step"


def first_batch_ns(profile: Profile) -> float:
    """How much longer than a usual batch the first one took, ns; 0: not known.

    Where batches were not timed, workers start until the first step ends, apart from what is compiled meanwhile.
    """
    first = first_call_ns(profile.run, _DATA)
    if first is not None:
        try:
            usual_ns = group_by_region(profile).own("region_time_p50")[1 + REGIONS.index(_DATA)]
        except (UsageError, KeyError):  # The file has no times of regions.
            return 0.0
        return max(first[1] - float(np.nan_to_num(usual_ns)), 0.0)
    times = step_times(profile)
    if times is None:
        return 0.0
    ends_ns = int(times.ends_ns[0])
    starts_ns = [each.started_ns for each in profile.run.workers if each.started_ns and each.started_ns < ends_ns]
    if not starts_ns:
        return 0.0
    own_ns = profile.own("host_time") if "host_time" in profile.metrics else np.zeros(len(profile.tree))
    return max(ends_ns - max(starts_ns) - times.usual()[0] - float(np.nansum(own_ns[compiling(profile)])), 0.0)


def is_in_first_step(profile: Profile) -> bool:
    """Whether the first timed step includes the first batch."""
    step, batch = first_call_ns(profile.run, _STEP), first_call_ns(profile.run, _DATA)
    return step is not None and batch is not None and step[0] <= batch[0]
