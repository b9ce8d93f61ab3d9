"""Whether the GPU waits in training steps, and for what."""

from __future__ import annotations

from collections.abc import Iterator

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.causes.first_batch import first_batch_ns, is_in_first_step
from bragg.analyze.causes.input_waits import IDLE_WORKERS, NOT_MORE_WORKERS, idle_share_of_workers
from bragg.analyze.engine import Rule
from bragg.grouping.regions import REGIONS
from bragg.model import Finding, Severity
from bragg.model.finding import percent_text

# A GPU that is this busy is not helped by a faster host.
_BUSY = 0.8
_MUCH = 0.2
_MORE_WORKERS = "try more num_workers, or larger batches of cheaper items"


def _find(evidence: Evidence) -> Iterator[Finding]:
    regions = evidence.regions
    if regions is None or not regions.measured("region_time"):
        return
    total_ns = regions.total("region_time")
    data_ns = float(regions.own("region_time")[1 + REGIONS.index("data")])
    once_ns = min(first_batch_ns(evidence.profile), data_ns) if is_in_first_step(evidence.profile) else 0.0
    data = (data_ns - once_ns) / max(total_ns - once_ns, 1)
    is_idle = idle_share_of_workers(evidence.profile) >= IDLE_WORKERS
    change = NOT_MORE_WORKERS if is_idle else _MORE_WORKERS
    if not regions.measured("gpu_time"):
        if data > _MUCH:
            yield _finding(Severity.WARNING, f"data takes {percent_text(data)} of a step", change)
        return
    busy = min(float(regions.own("gpu_time")[1:-1].sum()) / total_ns, 1.0)
    is_busy = f"the GPU is busy {percent_text(busy)} of a step"
    if busy >= _BUSY:
        yield _finding(Severity.NOTE, is_busy)
    elif data > _MUCH:
        yield _finding(Severity.WARNING, f"{is_busy} and waits for data, {percent_text(data)} of it", change)
    else:
        where = "where: bragg view -m gpu_wait,host_time"
        yield _finding(Severity.WARNING, f"{is_busy} and waits for the CPU", where)


def _finding(severity: Severity, message: str, hint: str = "") -> Finding:
    return Finding("step-waits", severity, message, hint)


RULE = Rule(_find, "whether the GPU waits in training steps")
