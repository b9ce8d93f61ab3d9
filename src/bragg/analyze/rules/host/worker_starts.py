"""Workers of a DataLoader that are started anew for each epoch."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.causes.host_finding import Cause, host_finding, three_digits
from bragg.analyze.causes.needs import HOST_TIME, IDLE
from bragg.analyze.causes.paths import below, in_files, named
from bragg.analyze.causes.thresholds import WAITED
from bragg.analyze.engine import HostTime, Rule
from bragg.model import Confidence, Finding, Quantity

_CHANGE = "DataLoader(..., persistent_workers=True), which keeps its workers over epochs"
_LOADER = re.compile(r"[/\\]torch[/\\]utils[/\\]data[/\\]dataloader\.py$")
_STARTS_OR_ENDS = re.compile(r"_MultiProcessingDataLoaderIter\.(?:__init__|_shutdown_workers|__del__)")


def _find(evidence: Evidence) -> Iterator[Finding]:
    profile = evidence.profile
    times = _generations((run.started_ns, run.ended_ns) for run in profile.run.workers)
    restarts = below(profile, in_files(profile, _LOADER) & named(profile, _STARTS_OR_ENDS.fullmatch))
    wait_ns = float(evidence.sampled_ns[restarts].sum()) * (1 - 1 / times) if times > 1 else 0.0
    if evidence.busy is not None:
        wait_ns = min(wait_ns, (1 - evidence.busy) * evidence.wall_ns)
    if not wait_ns or wait_ns < WAITED.value * evidence.wall_ns:
        return
    cause = Cause(
        "worker-starts",
        f"the DataLoader starts its workers {times} times, which takes {three_digits(wait_ns / 1e6)} ms "
        "in addition to the first start",
        _CHANGE,
        evidence.gain(wait_ns),
        Confidence.PROVEN,
        (Quantity("starts of all workers", times), Quantity("starting and ending workers", wait_ns, "ns")),
    )
    yield host_finding(evidence, restarts, evidence.sampled_ns, cause)


def _generations(spans: Iterable[tuple[int | None, int | None]]) -> int:
    """How often workers began after others had ended, and the first time.

    Args:
        spans: When each worker began and ended; None: not known.
    """
    found, ends = 0, 0
    for start, end in sorted((start, end) for start, end in spans if start is not None and end is not None):
        if start >= ends:
            found, ends = found + 1, end
        ends = min(ends, end)
    return found


RULE = Rule(
    _find,
    "workers of a DataLoader that are started for each epoch",
    (IDLE, HOST_TIME),
    (WAITED,),
    _CHANGE,
    host_time=HostTime.CAUSE,
)
