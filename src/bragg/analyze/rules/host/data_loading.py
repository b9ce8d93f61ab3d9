"""Steps that wait for their input."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.causes.host_finding import Cause, host_finding, three_digits
from bragg.analyze.causes.host_steps import WAITS_OR_STEPS, HostCost, host_costs
from bragg.analyze.causes.input_waits import SINGLE, WORKERS, late_batches_ns, loading
from bragg.analyze.causes.needs import Need
from bragg.analyze.causes.thresholds import OF_STEP, READY_BATCH, WAITED
from bragg.analyze.engine import HostTime, Rule
from bragg.model import Confidence, Finding, Quantity

__all__ = ["RULE"]

_NO_WORKERS = "the DataLoader has no workers: the step itself makes its batch"
_SAVED = 0.9
_FEW_WORKERS = "the DataLoader's workers do not keep up"
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
        _FEW_WORKERS,
        "cheaper items, or more num_workers, if cores are free; persistent_workers=True keeps them over epochs",
        _SAVED,
    ),
}


def _find(evidence: Evidence) -> Iterator[Finding]:
    profile, idle_ns = evidence.profile, evidence.idle_ns
    if idle_ns is None:
        for kind, cost in _WITHOUT_GPU.items():
            yield from host_costs(evidence, loading(profile, kind), cost)
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
            _FEW_WORKERS,
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


_HAS_LOADER = Need(
    "a DataLoader",
    "",
    lambda evidence: any(loading(evidence.profile, kind).any() for kind in (SINGLE, WORKERS)),
    is_of_program=True,
)

RULE = Rule(
    _find,
    "steps that wait for a DataLoader",
    (WAITS_OR_STEPS, _HAS_LOADER),
    (WAITED, READY_BATCH, OF_STEP),
    "workers, pinned memory, prefetching",
    host_time=HostTime.CAUSE,
)
