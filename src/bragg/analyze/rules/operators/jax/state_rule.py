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


def state_rule(state: str, finds: str, work: Work, most_ns: float = math.inf) -> Rule:
    """A rule about all work below a state, whose kernels take at most this long on average."""

    def find(evidence: Evidence) -> Iterator[Finding]:
        states = named(evidence.profile, lambda name: name.startswith(state))
        nodes = below(evidence.profile, states)
        if float(evidence.gpu_ns[nodes].sum()) > most_ns * float(evidence.gpu_count[nodes].sum()):
            return
        for finding in work_findings(evidence, nodes, work):
            found = at_cause(evidence, finding, states)
            jitted = made_at(evidence, found.node) if state == COPIED else None
            yield moved(found, jitted) if jitted else found

    numbers = (MUCH_GPU,) if most_ns == math.inf else (MUCH_GPU, SHORT_TURN)
    return Rule(find, finds, (GPU_TIME,), numbers, work.change, host_time=HostTime.CAUSE)


def at_cause(evidence: Evidence, finding: Finding, states: BoolArray) -> Finding:
    """At the line that asks for the work, as the states, or nodes below them, [n_nodes], tell."""
    tree = evidence.profile.tree
    spent_ns = tree.sum_up(evidence.gpu_ns)
    node = int(np.where(states & (tree.frames.line[tree.frame] > 0), spent_ns, -1).argmax())
    frame = int(tree.frame[node])
    is_told = states[node] and tree.frames.line[frame] > 0
    place = Place(tree.frames.file[frame], int(tree.frames.line[frame]), node=finding.node)
    return moved(finding, place) if is_told else finding
