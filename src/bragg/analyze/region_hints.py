"""What the regions of a training program say of who waits for whom."""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from bragg.grouping.hlo_names import CALLS
from bragg.grouping.regions import REGIONS, of_compilations, step_function
from bragg.model import FrameKind, Profile

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
        regions: The same, as `bragg.grouping.regions.group_by_region` makes it.
    """
    if "region_time" not in regions.metrics:
        missing = "times of regions n/a: the program was killed, or recorded without --regions"
        return _jitted_calls(profile) or [missing]
    if not regions.own("region_calls")[0] or not regions.total("region_time"):
        return ["no optimizer made a step: times are those of the whole run"]
    function = step_function(profile.meta)
    count = regions.own("region_calls")[0]
    if function:
        return [f"{count} steps, calls of {function}, each from the end of the one before", *_jitted_calls(profile)]
    steps = [f"{count} steps; what stands at the total is of a whole step"]
    return steps + _waits(regions) + _rest(regions)


def _rest(regions: Profile) -> list[str]:
    """What a large rest may be."""
    share = float(regions.own("region_time")[-1]) / regions.total("region_time")
    if share <= _LARGE_REST:
        return []
    held = f"other holds {_percent(share)} of a step"
    return [f"{held}, such as copies to the GPU and waiting for it: bragg view -m host_time"]


def _jitted_calls(profile: Profile) -> list[str]:
    """The steps of JAX: calls of the jitted functions that took the most host time, besides compiling them."""
    tree = profile.tree
    if not {"host_time", "host_count"} <= profile.metrics.keys():
        return []
    counts = profile.own("host_count")
    host_ns = tree.sum_up(np.where(of_compilations(tree), 0, profile.own("host_time")))
    time_ns: dict[str, float] = defaultdict(float)
    calls: dict[str, int] = defaultdict(int)
    for node in np.flatnonzero((tree.kind == FrameKind.OPERATOR) & (counts > 0)).tolist():
        if tree.label(node).startswith(CALLS):
            time_ns[tree.label(node)] += float(host_ns[node])
            calls[tree.label(node)] += int(counts[node])
    longest = sorted(time_ns, key=lambda name: -time_ns[name])[:_N_FUNCTIONS]
    return [_calls_text(name, calls[name], time_ns[name] / calls[name]) for name in longest]


def _calls_text(name: str, n_calls: int, mean_ns: float) -> str:
    calls = "1 call" if n_calls == 1 else f"{n_calls} calls"
    return f"{name}: {calls}, {mean_ns / 1e6:.2f} ms of the host each, without compiling"


def _waits(regions: Profile) -> list[str]:
    """Whether the GPU waits, and for what."""
    total_ns = regions.total("region_time")
    data = float(regions.own("region_time")[1 + REGIONS.index("data")]) / total_ns
    if "gpu_time" not in regions.metrics or not regions.total("gpu_time"):
        return [f"data takes {_percent(data)} of a step: {_MORE_WORKERS}"] if data > _MUCH else []
    busy = min(float(regions.own("gpu_time")[1:-1].sum()) / total_ns, 1.0)
    is_busy = f"the GPU is busy {_percent(busy)} of a step"
    if busy >= _BUSY:
        return [is_busy]
    if data > _MUCH:
        return [f"{is_busy} and waits for data, {_percent(data)} of it: {_MORE_WORKERS}"]
    return [f"{is_busy} and waits for the CPU; where: bragg view -m gpu_wait,host_time"]


def _percent(share: float) -> str:
    return f"{share * 100:.0f} %"
