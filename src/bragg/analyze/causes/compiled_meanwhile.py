"""Waits for a launch before which the host compiled: recorders without a timeline know the launch alone."""

from __future__ import annotations

import numpy as np

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.causes.sampled_code import SAME_MOST, SAME_SHARE, sampled_code
from bragg.analyze.causes.thresholds import COMPILE_WAIT, WAITS
from bragg.model import FrameKind
from bragg.model.table import FloatArray


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
    if compiled_ns < (1.0 if evidence.of_steady else SAME_SHARE) * wait_ns or _has_other_code(evidence, waits_ns):
        return 0.0
    return min(compiled_ns, wait_ns)


def _has_other_code(evidence: Evidence, waits_ns: FloatArray) -> bool:
    """Whether samples saw the host in other code for as long: in what launches nothing, or in a line that waits."""
    host, tree = evidence.host, evidence.profile.tree
    others = host.input | host.compilation | host.output | host.waiting | host.allocation
    wait_ns = float(waits_ns.sum())
    waiting = (tree.kind == FrameKind.PYTHON) & ~others & (tree.sum_up(waits_ns) >= SAME_SHARE * wait_ns)
    times_ns = [each.time_ns for each in sampled_code(evidence, others)] + evidence.sampled_ns[waiting].tolist()
    return any(SAME_SHARE * wait_ns <= each <= SAME_MOST * wait_ns for each in times_ns)
