"""Steps that wait for their input."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.causes.first_batch import first_batch_ns
from bragg.analyze.causes.host_finding import Cause, host_finding, lasting, three_digits
from bragg.analyze.causes.host_steps import HostCost, host_costs, host_steps
from bragg.analyze.causes.host_work import host_work
from bragg.analyze.causes.input_waits import (
    IDLE_WORKERS,
    NOT_MORE_WORKERS,
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
from bragg.model import Confidence, Finding, Gain, Quantity
from bragg.model.finding import percent_text

_SAVED = 0.9
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
_FIRST = "make what each worker does first cheaper: worker_init_fn, imports, and what the data set opens"


def _find(evidence: Evidence) -> Iterator[Finding]:
    profile, idle_ns = evidence.profile, evidence.idle_ns
    late, is_idle = _late_workers(evidence)
    if idle_ns is None:
        costs = host_costs if host_steps(evidence) else host_work
        once_ns = first_batch_ns(profile) if host_steps(evidence) else 0.0
        for kind, what, change in (
            (SINGLE, _NO_WORKERS, _CHEAPER_ITEMS),
            (WORKERS, late, NOT_MORE_WORKERS if is_idle else _MORE_WORKERS),
        ):
            cost = HostCost("data-loading", what, change, _SAVED, once_ns)
            yield from costs(evidence, loading(profile, kind), cost)
        yield from _first_batch(evidence, once_ns)
        return
    single = _NO_WORKERS, "DataLoader(num_workers=4, pin_memory=True, persistent_workers=True)"
    several = late, NOT_MORE_WORKERS if is_idle else "more num_workers, larger prefetch_factor, or cheaper items"
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


def _first_batch(evidence: Evidence, once_ns: float) -> Iterator[Finding]:
    """What workers take to start, where that is much of a run without a GPU."""
    inside, run_ns = loading(evidence.profile, WORKERS), evidence.profile.run.duration_ns
    own_ns = np.where(inside, np.nan_to_num(evidence.profile.own("host_time").astype(np.float64)), 0.0)
    once_ns = min(once_ns, float(own_ns.sum()))
    if not run_ns or not once_ns or once_ns < WAITED.value * run_ns:
        return
    cause = Cause(
        "data-loading",
        f"the first batch of the DataLoader's workers is {lasting(once_ns)} late: they start meanwhile",
        _FIRST,
        Gain(once_ns * _SAVED, run_ns, is_once=True),
        Confidence.HEURISTIC,
        (Quantity("start of workers", once_ns, "ns"),),
    )
    yield host_finding(evidence, inside, own_ns, cause)


def _late_workers(evidence: Evidence) -> tuple[str, bool]:
    """What to say of workers whose batches are waited for, and whether they have little to do."""
    idle = idle_share_of_workers(evidence.profile)
    if idle >= IDLE_WORKERS:
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
