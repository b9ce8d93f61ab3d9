"""Steps that wait for their input."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.causes.host_finding import Cause, host_finding, three_digits
from bragg.analyze.causes.host_steps import HostCost, host_costs, host_steps
from bragg.analyze.causes.host_work import host_work
from bragg.analyze.causes.input_waits import SINGLE, WORKERS, costly_item_text, late_batches_ns, loading
from bragg.analyze.causes.needs import HOST_TIME, TRACE, Need
from bragg.analyze.causes.thresholds import OF_STEP, READY_BATCH, WAITED
from bragg.analyze.engine import HostTime, Rule
from bragg.model import Confidence, Finding, Quantity

_NO_WORKERS = "the DataLoader has no workers: the step itself makes its batch"
_SAVED = 0.9
_WITHOUT_GPU = {
    SINGLE: HostCost(
        "data-loading",
        _NO_WORKERS,
        "make items cheaper first (arrays of a whole batch instead of Python for each item); for long runs "
        "DataLoader(num_workers=2, persistent_workers=True), if cores are free: workers take a while to start",
        _SAVED,
    ),
    WORKERS: HostCost(
        "data-loading",
        "",
        "cheaper items, or more num_workers, if cores are free; persistent_workers=True keeps them over epochs",
        _SAVED,
    ),
}


def _find(evidence: Evidence) -> Iterator[Finding]:
    profile, idle_ns = evidence.profile, evidence.idle_ns
    item = costly_item_text(profile)
    few_workers = f"the DataLoader's workers{f' ({item})' if item else ''} do not keep up"
    if idle_ns is None:
        costs = host_costs if host_steps(evidence) else host_work
        for kind, cost in _WITHOUT_GPU.items():
            what = few_workers if kind == WORKERS else cost.what
            yield from costs(evidence, loading(profile, kind), replace(cost, what=what))
        return
    for kind, least_ns, message, change, confidence in (
        (
            SINGLE,
            0.0,
            _NO_WORKERS,
            "DataLoader(num_workers=4, pin_memory=True, persistent_workers=True)",
            Confidence.PROVEN,
        ),
        (
            WORKERS,
            READY_BATCH.value,
            few_workers,
            "more num_workers, larger prefetch_factor, or cheaper items",
            Confidence.LIKELY,
        ),
    ):
        inside = loading(profile, kind)
        calls = float(evidence.calls[inside & ~inside[np.maximum(profile.tree.parent, 0)]].sum())
        waited_ns = float(idle_ns[inside].sum()) + (late_batches_ns(evidence) if kind == SINGLE else 0.0)
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
