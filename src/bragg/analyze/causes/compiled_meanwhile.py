"""Waits for a launch before which the host compiled: recorders without a timeline know the launch alone."""

from __future__ import annotations

import numpy as np

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.causes.sampled_code import SAME_MOST, SAME_SHARE, sampled_code
from bragg.analyze.causes.thresholds import COMPILE_WAIT, WAITS

__all__ = ["compiled_meanwhile_ns"]


def compiled_meanwhile_ns(evidence: Evidence) -> float:
    """How long GPUs waited for compilers, of `code_wait_ns`.

    Such waits are long and no part of each step. It is what compilers took beyond the waits that are known to be
    theirs, if no other code ran for as long.
    """
    if evidence.has_timeline or evidence.idle_ns is None or "host_time" not in evidence.profile.metrics:
        return 0.0
    rare = evidence.pauses < max(WAITS.value * evidence.steps, 1.0) if evidence.of_steady else evidence.pauses > 0
    waits_ns = np.where(rare, evidence.code_wait_ns, 0.0)
    wait_ns, n_waits = float(waits_ns.sum()), float(evidence.pauses[waits_ns > 0].sum())
    if wait_ns < COMPILE_WAIT.value * max(n_waits, 1.0):
        return 0.0
    of_run_ns = np.nan_to_num(evidence.profile.own("host_time").astype(np.float64))
    compiled_ns = float((of_run_ns - evidence.waits_of_run_ns)[evidence.compiling].sum())
    # Of a whole run some waits are for what the program loads.
    if compiled_ns < (1.0 if evidence.of_steady else SAME_SHARE) * wait_ns or _has_other_code(evidence, wait_ns):
        return 0.0
    return min(compiled_ns, wait_ns)


def _has_other_code(evidence: Evidence, wait_ns: float) -> bool:
    host = evidence.host
    others = host.input | host.compilation | host.output | host.waiting | host.allocation
    pieces = sampled_code(evidence, others)
    return any(SAME_SHARE * wait_ns <= each.time_ns <= SAME_MOST * wait_ns for each in pieces)
