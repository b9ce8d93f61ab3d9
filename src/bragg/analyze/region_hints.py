"""What the regions of a training program say of who waits for whom."""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from bragg.model import FrameKind, Profile
from bragg.model.hlo_names import CALL
from bragg.model.regions import REGIONS

__all__ = ["region_hints"]

# A GPU that is this busy is not helped by a faster host.
_BUSY = 0.8
_MUCH = 0.2
_LARGE_REST = 0.5
_N_FUNCTIONS = 3
_MORE_WORKERS = "try more num_workers, or larger batches of cheaper items"


def region_hints(profile: Profile, regions: Profile) -> list[str]:
    """Sentences for below the table of regions.

    Args:
        profile: What was recorded.
        regions: The same, as `bragg.model.regions.group_by_region` makes it.
    """
    if "region_time" not in regions.metrics:
        missing = "times of regions n/a: the program was killed, or recorded without --regions"
        return _jitted_calls(profile) or [missing]
    if not regions.own("region_calls")[0] or not regions.total("region_time"):
        return ["no optimizer made a step: times are those of the whole run"]
    steps = [f"{regions.own('region_calls')[0]} steps; what stands at the total is of a whole step"]
    return steps + _waits(regions) + _rest(regions)


def _rest(regions: Profile) -> list[str]:
    """What a large rest may be."""
    share = float(regions.own("region_time")[-1]) / regions.total("region_time")
    if share <= _LARGE_REST:
        return []
    return [f"other holds {share:.0%} of a step, such as copies to the GPU and waiting for it: bragg view -m host_time"]


def _jitted_calls(profile: Profile) -> list[str]:
    """The steps of JAX: calls of the jitted functions that took the most host time."""
    tree = profile.tree
    if not {"host_time", "host_count"} <= profile.metrics.keys():
        return []
    counts = profile.own("host_count")
    time_ns: dict[str, float] = defaultdict(float)
    calls: dict[str, int] = defaultdict(int)
    for node in np.flatnonzero((tree.kind == FrameKind.OPERATOR) & (counts > 0)).tolist():
        if tree.label(node).startswith(CALL):
            time_ns[tree.label(node)] += float(profile.inclusive("host_time")[node])
            calls[tree.label(node)] += int(counts[node])
    longest = sorted(time_ns, key=lambda name: -time_ns[name])[:_N_FUNCTIONS]
    means_ms = {name: time_ns[name] / calls[name] / 1e6 for name in longest}
    return [f"{name}: {calls[name]} calls, {mean_ms:.2f} ms of the host each" for name, mean_ms in means_ms.items()]


def _waits(regions: Profile) -> list[str]:
    """Whether the GPU waits, and for what."""
    total_ns = regions.total("region_time")
    data = float(regions.own("region_time")[1 + REGIONS.index("data")]) / total_ns
    if "gpu_time" not in regions.metrics or not regions.total("gpu_time"):
        return [f"data takes {data:.0%} of a step: {_MORE_WORKERS}"] if data > _MUCH else []
    busy = min(float(regions.own("gpu_time")[1:-1].sum()) / total_ns, 1.0)
    if busy >= _BUSY:
        return [f"the GPU is busy {busy:.0%} of a step"]
    if data > _MUCH:
        return [f"the GPU is busy {busy:.0%} of a step and waits for data, {data:.0%} of it: {_MORE_WORKERS}"]
    return [f"the GPU is busy {busy:.0%} of a step and waits for the CPU; where: bragg view -m gpu_wait,host_time"]
