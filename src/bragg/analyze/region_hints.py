"""What the regions of a training program say of who waits for whom."""

from __future__ import annotations

from bragg.model import Profile
from bragg.model.regions import REGIONS

__all__ = ["region_hints"]

# A GPU that is this busy is not helped by a faster host.
_BUSY = 0.8
_MUCH = 0.2


def region_hints(regions: Profile) -> list[str]:
    """Sentences for below the table of regions.

    Args:
        regions: As `bragg.model.regions.group_by_region` makes it.
    """
    if "region_time" not in regions.metrics:
        return ["times of regions n/a: the program was killed, or recorded without --regions"]
    if "step" not in regions.meta["regions"]:
        return ["no optimizer made a step: times are those of the whole run"]
    steps = [f"{regions.own('region_calls')[0]} steps; what stands at the total is of a whole step"]
    return steps + _waits(regions)


def _waits(regions: Profile) -> list[str]:
    total_ns = regions.total("region_time")
    data = float(regions.own("region_time")[1 + REGIONS.index("data")]) / total_ns
    if "gpu_time" not in regions.metrics or not regions.total("gpu_time"):
        return [f"data takes {data:.0%} of a step: {_MORE_WORKERS}"] if data > _MUCH else []
    busy = float(regions.own("gpu_time")[1:-1].sum()) / total_ns
    if busy >= _BUSY:
        return []
    if data > _MUCH:
        return [f"the GPU is busy {busy:.0%} of a step and waits for data, {data:.0%} of it: {_MORE_WORKERS}"]
    return [f"the GPU is busy {busy:.0%} of a step and waits for the CPU; where: bragg view -m gpu_wait,host_time"]


_MORE_WORKERS = "try more num_workers, or larger batches of cheaper items"
