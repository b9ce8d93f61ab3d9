"""Steps that wait for their input."""

from __future__ import annotations

from collections.abc import Iterator

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.causes.host_finding import Cause, host_finding, three_digits
from bragg.analyze.causes.host_steps import HostCost, host_costs, host_steps
from bragg.analyze.causes.host_work import host_work
from bragg.analyze.causes.input_waits import (
    SINGLE,
    WORKERS,
    batches_made,
    costly_item_text,
    idle_share_of_workers,
    is_of_gpu_items,
    loading,
    waits_for_batches_ns,
)
from bragg.analyze.causes.needs import HOST_TIME, TRACE, Need
from bragg.analyze.causes.thresholds import OF_STEP, READY_BATCH, WAITED
from bragg.analyze.engine import HostTime, Rule
from bragg.model import Confidence, Finding, Quantity
from bragg.model.finding import percent_text

_SAVED = 0.9
_MOSTLY = 0.75  # of the time of workers
_NO_WORKERS = "the DataLoader has no workers: the step itself makes its batch"
_CHEAPER_ITEMS = (
    "make items cheaper first (arrays of a whole batch instead of Python for each item); for long runs "
    "DataLoader(num_workers=2, persistent_workers=True), if cores are free: workers take a while to start"
)
_MORE_WORKERS = "cheaper items, or more num_workers, if cores are free; persistent_workers=True keeps them over epochs"
_ON_GPU = "the DataLoader makes batches of items that are on the GPU"
_WHOLE_BATCHES = (
    "take whole batches of the tensors at once: x[order[i:i + size]] with order = torch.randperm(len(x), "
    "device=x.device); workers and pinned memory are for items on the host"
)
_NOT_MORE = (
    "not more num_workers: what is late is starting them (persistent_workers=True), handing batches over (larger ones, "
    "of fewer tensors), or a core for them"
)


def _find(evidence: Evidence) -> Iterator[Finding]:
    profile, idle_ns = evidence.profile, evidence.idle_ns
    late, is_idle = _late_workers(evidence)
    if idle_ns is None:
        costs = host_costs if host_steps(evidence) else host_work
        for kind, what, change in (
            (SINGLE, _NO_WORKERS, _CHEAPER_ITEMS),
            (WORKERS, late, _NOT_MORE if is_idle else _MORE_WORKERS),
        ):
            yield from costs(evidence, loading(profile, kind), HostCost("data-loading", what, change, _SAVED))
        return
    single = _NO_WORKERS, "DataLoader(num_workers=4, pin_memory=True, persistent_workers=True)"
    several = late, _NOT_MORE if is_idle else "more num_workers, larger prefetch_factor, or cheaper items"
    for kind, least_ns, (message, change), confidence in (
        (SINGLE, 0.0, (_ON_GPU, _WHOLE_BATCHES) if is_of_gpu_items(evidence) else single, Confidence.PROVEN),
        (WORKERS, READY_BATCH.value, several, Confidence.LIKELY),
    ):
        inside = loading(profile, kind)
        calls = batches_made(evidence, inside)
        waited_ns = waits_for_batches_ns(evidence, kind)
        if waited_ns < max(WAITED.value * evidence.wall_ns, least_ns * calls):
            continue
        gain = evidence.host_gain(inside, _SAVED)
        limit = gain.limit if gain else ""
        cause = Cause(
            "data-loading",
            f"{message}, and the GPU waits {three_digits(evidence.per_step(waited_ns) / 1e6)} ms {evidence.step_word}",
            change,
            evidence=(Quantity(f"wait {evidence.step_word}", evidence.per_step(waited_ns), "ns"),),
            gain=evidence.gain(waited_ns * _SAVED, limit),
            confidence=confidence,
        )
        yield host_finding(evidence, inside, idle_ns, cause)


def _late_workers(evidence: Evidence) -> tuple[str, bool]:
    """What to say of workers whose batches are waited for, and whether they have little to do."""
    idle = idle_share_of_workers(evidence.profile)
    if idle >= _MOSTLY:
        late = "batches of the DataLoader's workers are late, though these wait"
        return f"{late} {percent_text(idle)} of their time", True
    item = costly_item_text(evidence.profile)
    return f"the DataLoader's workers{f' ({item})' if item else ''} do not keep up", False


_WAITS = Need(
    "what GPUs waited for, or host time without a GPU",
    TRACE,
    lambda evidence: evidence.idle_ns is not None or (HOST_TIME.is_met(evidence) and not evidence.gpu_count.any()),
)
_HAS_LOADER = Need(
    "a DataLoader",
    "",
    lambda evidence: any(loading(evidence.profile, kind).any() for kind in (SINGLE, WORKERS)),
    is_of_program=True,
)

RULE = Rule(
    _find,
    "steps that wait for a DataLoader",
    (_WAITS, _HAS_LOADER),
    (WAITED, READY_BATCH, OF_STEP),
    "workers, pinned memory, prefetching",
    host_time=HostTime.CAUSE,
)
