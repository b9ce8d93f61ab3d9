"""A rule about the work below one state: a frame that tells what a compiled program of JAX does needlessly."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.causes.host_finding import moved
from bragg.analyze.causes.jitted_calls import made_at
from bragg.analyze.causes.needs import GPU_TIME
from bragg.analyze.causes.paths import below, named
from bragg.analyze.causes.thresholds import MUCH_GPU, SHORT_TURN
from bragg.analyze.causes.work_finding import Work, work_findings
from bragg.analyze.engine import HostTime, Rule
from bragg.grouping.hlo_names import COPIED
from bragg.model import Finding, Place
from bragg.model.table import BoolArray

__all__ = ["state_rule"]


def state_rule(state: str, finds: str, work: Work, most_ns: float = math.inf) -> Rule:
    """A rule about all work below a state, whose kernels take at most this long on average."""

    def find(evidence: Evidence) -> Iterator[Finding]:
        states = named(evidence.profile, lambda name: name.startswith(state))
        nodes = below(evidence.profile, states)
        if float(evidence.gpu_ns[nodes].sum()) > most_ns * float(evidence.gpu_count[nodes].sum()):
            return
        for finding in work_findings(evidence, nodes, work):
            yield _at_cause(evidence, finding, states, is_copy=state == COPIED)

    numbers = (MUCH_GPU,) if most_ns == math.inf else (MUCH_GPU, SHORT_TURN)
    return Rule(find, finds, (GPU_TIME,), numbers, work.change, host_time=HostTime.CAUSE)


def _at_cause(evidence: Evidence, finding: Finding, states: BoolArray, *, is_copy: bool) -> Finding:
    """At the line that asks for the work; of copies where the function is jitted, which decides what it is given."""
    tree = evidence.profile.tree
    spent_ns = tree.sum_up(evidence.gpu_ns)
    node = int(np.where(states & (tree.frames.line[tree.frame] > 0), spent_ns, -1).argmax())
    frame = int(tree.frame[node])
    if states[node] and tree.frames.line[frame] > 0:
        finding = moved(finding, Place(tree.frames.file[frame], int(tree.frames.line[frame]), node=finding.node))
    jitted = made_at(evidence, finding.node) if is_copy else None
    return moved(finding, jitted) if jitted else finding
