"""Guards of compiled functions that are checked at each call for long."""

from __future__ import annotations

from collections.abc import Iterator

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.causes.host_finding import Cause, counted, host_finding, lasting
from bragg.analyze.causes.needs import IDLE, OPERATORS
from bragg.analyze.causes.paths import named
from bragg.analyze.causes.thresholds import LONG_GUARDS, PLAN_SHARE
from bragg.analyze.engine import HostTime, Rule
from bragg.grouping.compiled_regions import LOOKUP
from bragg.model import Confidence, Finding, Quantity

# 72 us of 200 layers became 2 us on a CPU.
_SAVED = 0.95
_CHANGE = (
    "after the warm-up torch.compiler.set_stance(skip_guard_eval_unsafe=True), if no shape, type or setting changes "
    "any more; or larger batches"
)


def _find(evidence: Evidence) -> Iterator[Finding]:
    idle_ns, lookups = evidence.idle_ns, named(evidence.profile, LOOKUP.__eq__)
    count = float(evidence.calls[lookups].sum())
    if idle_ns is None or not count:
        return
    mean_ns = float(evidence.recurring_host_ns[lookups].sum()) / count
    if mean_ns < LONG_GUARDS.value or float(idle_ns[lookups].sum()) < PLAN_SHARE.value * evidence.wall_ns:
        return
    cause = Cause(
        "guards",
        f"compiled functions check their guards for {lasting(mean_ns)} a call, {counted(evidence, count, 'call')}",
        _CHANGE,
        evidence.host_gain(lookups, _SAVED),
        Confidence.PROVEN,
        (
            Quantity("checks of guards", mean_ns, "ns"),
            Quantity(f"calls {evidence.step_word}", evidence.per_step(count)),
        ),
    )
    yield host_finding(evidence, lookups, idle_ns, cause)


RULE = Rule(
    _find,
    "guards of compiled functions that take long at each call",
    (IDLE, OPERATORS),
    (LONG_GUARDS, PLAN_SHARE),
    _CHANGE,
    host_time=HostTime.CAUSE,
)
