"""Steps that wait for code of the host which launches nothing: Python, NumPy, sleeping, reading files."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.causes.host_finding import Cause, host_finding, three_digits
from bragg.analyze.causes.host_steps import WAITS_OR_STEPS, HostCost, host_costs
from bragg.analyze.causes.input_waits import late_batches_ns
from bragg.analyze.causes.needs import HOST_TIME
from bragg.analyze.causes.paths import below
from bragg.analyze.causes.recompiled_kernels import recompiled_kernels
from bragg.analyze.causes.recurring_waits import recurring_waits
from bragg.analyze.causes.sampled_code import waited_code
from bragg.analyze.causes.staged import jitted_with_copies
from bragg.analyze.causes.thresholds import LONG_CODE, OF_STEP, WAITS, WRITING
from bragg.analyze.engine import HostTime, Rule
from bragg.model import Confidence, Finding, Quantity
from bragg.model.table import BoolArray, FloatArray

_SAVED = 0.9
# Of all waits: others are then not worth a word.
_MOST = 0.8
_CHANGE = "do it on the GPU, once before the steps, or in another thread or DataLoader workers while the GPU works"
_WITHOUT_GPU = HostCost(
    "host-code",
    "a thread waits at this line: it sleeps, or waits for a file, a socket or a lock",
    "do it once before the steps, less often, or in another thread",
    _SAVED,
)


def _find(evidence: Evidence) -> Iterator[Finding]:
    if evidence.idle_ns is None:
        yield from host_costs(evidence, recurring_waits(evidence), _WITHOUT_GPU)
        return
    recurs = evidence.pauses >= max(WAITS.value * evidence.steps, 1.0)
    host = evidence.host
    given, _ = jitted_with_copies(evidence)  # a rule of its own
    recurs &= ~given & ~_compile_each_time(evidence)
    for kernel in recompiled_kernels(evidence):  # rules of their own
        recurs &= ~(kernel.callers & (kernel.took_ns >= _MOST * float(evidence.code_wait_ns[kernel.callers].sum())))
    waits_ns = np.where(recurs & (host.launching | host.copying | host.waiting), evidence.code_wait_ns, 0.0)
    wait_ns = float(waits_ns.sum()) - (0.0 if evidence.of_steady else _starting_ns(evidence, waits_ns > 0))
    wait_ns -= late_batches_ns(evidence)  # a rule of its own
    n_waits = float(evidence.pauses[waits_ns > 0].sum())
    if not n_waits or wait_ns <= 0 or wait_ns < WRITING.value * evidence.wall_ns:
        return
    sampled = waited_code(evidence, wait_ns)
    if sampled is None and not evidence.of_steady:
        return
    nodes = below(evidence.profile, sampled.nodes) if sampled else waits_ns > 0
    weight = evidence.sampled_ns if sampled else waits_ns
    each_ns = wait_ns / n_waits
    where = "this code of the host, which launches nothing" if sampled else _before(evidence, waits_ns, wait_ns)
    cause = Cause(
        "host-code",
        f"the GPU waits {three_digits(evidence.per_step(wait_ns) / 1e6)} ms {evidence.step_word} for {where}, "
        f"{three_digits(each_ns / 1e6)} ms at a time",
        _CHANGE,
        evidence.gain(wait_ns * _SAVED),
        Confidence.LIKELY if sampled else Confidence.HEURISTIC,
        (
            Quantity(f"wait {evidence.step_word}", evidence.per_step(wait_ns), "ns"),
            Quantity("at a time", each_ns, "ns"),
        ),
    )
    yield host_finding(evidence, nodes, weight, cause)


def _before(evidence: Evidence, waits_ns: FloatArray, wait_ns: float) -> str:
    most_ns = float(waits_ns.max())
    if most_ns >= _MOST * wait_ns:
        return "code of the host before this launch"
    return f"code of the host before launches, {three_digits(evidence.per_step(most_ns) / 1e6)} ms before this one"


def _compile_each_time(evidence: Evidence) -> BoolArray:
    """Calls that compile at least at every second time, for which the GPU waits: [n_nodes]."""
    counts, parent = evidence.profile.metrics.get("host_count"), evidence.profile.tree.parent
    if counts is None:
        return np.zeros(len(parent), np.bool_)
    calls = np.nan_to_num(counts.own.astype(np.float64))
    begins = evidence.compiling & ~evidence.compiling[np.maximum(parent, 0)]
    compiled = np.bincount(parent[begins], calls[begins], len(parent))
    found: BoolArray = (compiled > 0) & (compiled >= WAITS.value * calls)
    return found


def _starting_ns(evidence: Evidence, nodes: BoolArray) -> float:
    """What a whole run has beside a steady state: launches that wait for compilers, or for what the program loads."""
    time_ns = evidence.sampled_ns if evidence.has_timeline else np.nan_to_num(evidence.profile.own("host_time"))
    return max(float(time_ns[evidence.compiling].sum()), float(evidence.longest_wait_ns[nodes].sum()))


RULE = Rule(
    _find,
    "code of the host between launches that a GPU waits for",
    (WAITS_OR_STEPS, HOST_TIME),
    (LONG_CODE, OF_STEP, WAITS, WRITING),
    _CHANGE,
    host_time=HostTime.CAUSE,
)
