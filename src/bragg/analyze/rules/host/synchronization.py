"""Steps in which the host waits for a GPU, which then waits for the host."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.causes.frameworks import is_training
from bragg.analyze.causes.host_finding import Cause, counted, host_finding, lasting
from bragg.analyze.causes.needs import GPU_TIME, IDLE
from bragg.analyze.causes.paths import below, named
from bragg.analyze.causes.staged import staged_copies
from bragg.analyze.causes.thresholds import PLAN_SHARE, RECURRING_WAITS, WAITS
from bragg.analyze.engine import HostTime, Rule
from bragg.analyze.wall.activity import activity_of
from bragg.grouping.hlo_names import CALLS
from bragg.model import Confidence, Finding, FrameKind, Quantity
from bragg.model.kernels.names import operator_name
from bragg.model.table import BoolArray, FloatArray, Int32Array, Int64Array

_FEW, _FEW_OF_JAX = 10, 4
# A call of a jitted function, and the graph that it launches.
_DISPATCHED = (*CALLS, "command_buffer")
_CHANGE = "read results less often: keep them on the GPU and read them together; copy with non_blocking=True"
_CHANGE_OF_LOSSES = (
    "read results less often: keep losses on the GPU and read them every 100 steps; copy with non_blocking=True"
)
_CHANGE_OF_JAX = "no block_until_ready() in the step: the host dispatches ahead; wait once, after the last step"
_CHANGE_OF_JAX_LOOP = "jax.lax.while_loop in a jitted function: no turn then waits for Python to read the condition"
_CHANGE_OF_LOOP = "read what ends the loop every 10 or 100 turns, if a few too many do no harm, not in each"
_CHANGE_OF_TIMING = "no torch.cuda.synchronize() in the step; time it with events, and read them later"
# What a call that reads a number takes where a GPU has nothing left to do: 15 to 30 us for a copy of 4 B on an H100.
_READ_NS = 30_000
_READ_LEAST_NS = 12_000
# What a copy to the GPU takes the host that it need not wait for.
_WRITE_NS = 60_000
_SELDOM = 0.05  # of how often the host waits at another line
_JAX_WAITS = ("ArrayImpl.block_until_ready", "block_until_ready")
_JAX_READS = ("ArrayImpl._value", "ArrayImpl.__array__", *_JAX_WAITS)


def _change(evidence: Evidence) -> str:
    return _CHANGE_OF_LOSSES if is_training(evidence.profile) else _CHANGE


def _find(evidence: Evidence) -> Iterator[Finding]:
    if evidence.idle_ns is None or evidence.busy is None:
        return
    calls, blocked = _of_timeline(evidence) if evidence.has_timeline else _of_sums(evidence)
    # A wait once in many turns of a loop is for the clock, or for a line of output.
    calls, blocked = (np.where(calls >= _SELDOM * calls.max(), each, 0.0) for each in (calls, blocked))
    n_waits, blocked_ns = float(calls.sum()), float(blocked.sum())
    if n_waits < (RECURRING_WAITS.value * evidence.n_steps if evidence.n_steps else _FEW):
        yield from _sampled(evidence)
        return
    late_ns = float(evidence.idle_ns.sum())
    # Until such a call returns, nothing is launched: then the GPU waits in it.
    inside_ns = float(evidence.idle_ns[below(evidence.profile, calls > 0)].sum())
    held_ns = blocked_ns + inside_ns
    wall_ns = min(held_ns, late_ns)
    tree = evidence.profile.tree
    names = sorted({operator_name(tree.frames.name[row]) for row in tree.frame[calls > 0].tolist()})
    has_results = any(not name.endswith("synchronize") for name in names)
    cause = Cause(
        "synchronization",
        f"the host waits for the GPU ({', '.join(names[:3])}), {counted(evidence, n_waits)}: "
        f"{lasting(evidence.per_step(held_ns))} in which it launches nothing",
        _change(evidence) if has_results else _CHANGE_OF_TIMING,
        evidence=(
            Quantity(f"waits {evidence.step_word}", evidence.per_step(n_waits)),
            Quantity(f"held up {evidence.step_word}", evidence.per_step(held_ns), "ns"),
        ),
        gain=evidence.gain(wall_ns, "the GPU" if late_ns < blocked_ns else ""),
        confidence=Confidence.LIKELY,
    )
    finding = host_finding(evidence, calls > 0, np.where(blocked.any(), blocked, calls), cause)
    if has_results and _ends_loop(evidence, finding):
        finding = replace(finding, hint=_CHANGE_OF_LOOP if set(names).isdisjoint(_JAX_READS) else _CHANGE_OF_JAX_LOOP)
    yield finding


def _ends_loop(evidence: Evidence, finding: Finding) -> bool:
    """Whether the line of a finding decides if a loop goes on."""
    file = evidence.text.file(finding.file)
    statement = file.statement(finding.line) if file else None
    above = file.parents.get(statement) if file and statement else None
    on_line = (statement, above if getattr(above, "lineno", 0) == finding.line else None)
    return any(isinstance(each, ast.While) or (isinstance(each, ast.If) and _breaks(each)) for each in on_line)


def _breaks(condition: ast.If) -> bool:
    return any(isinstance(each, ast.Break) for each in condition.body)


def _sampled(evidence: Evidence) -> Iterator[Finding]:
    """Waits without an operator or a recorded call, such as torch.cuda.synchronize(): how often is not known."""
    profile = evidence.profile
    of_jax = named(profile, _JAX_WAITS.__contains__)
    nodes = (evidence.host.waiting | of_jax) & (profile.tree.kind == FrameKind.PYTHON)
    if "samples" not in profile.metrics or not nodes.any() or evidence.idle_ns is None:
        return
    nodes = below(profile, nodes)
    samples = np.where(nodes, np.nan_to_num(profile.own("samples").astype(np.float64)), 0.0)
    held_ns, late_ns = float(evidence.host_ns[nodes].sum()), float(evidence.idle_ns.sum())
    if of_jax.any():  # within a function of XLA, nothing waits for its dispatch
        late_ns = float(evidence.idle_ns[named(profile, lambda name: name.startswith(_DISPATCHED))].sum())
    if samples.sum() < (_FEW_OF_JAX if of_jax.any() else _FEW) or held_ns < PLAN_SHARE.value * evidence.wall_ns:
        return
    cause = Cause(
        "synchronization",
        f"the host waits for the GPU: {lasting(evidence.per_step(held_ns))} {evidence.step_word} "
        f"in which it launches nothing, by {samples.sum():.0f} samples",
        _CHANGE_OF_JAX if of_jax.any() else _CHANGE_OF_TIMING,
        evidence.gain(min(held_ns, late_ns), "the GPU" if late_ns < held_ns else ""),
        Confidence.LIKELY,
        (
            Quantity("samples", float(samples.sum())),
            Quantity(f"held up {evidence.step_word}", evidence.per_step(held_ns), "ns"),
        ),
    )
    yield host_finding(evidence, nodes, evidence.host_ns, cause)


def _of_timeline(evidence: Evidence) -> tuple[FloatArray, FloatArray]:
    """How often the host waits in each node, and how long: each [n_nodes].

    It is only held up while the GPU still works: the call itself costs time without a wait, too.
    """
    activity, n_nodes = activity_of(evidence.profile), len(evidence.profile.tree)
    waiting = evidence.host.waiting | _copies_that_wait(evidence)
    slices = evidence.slices.take(evidence.on_host & waiting[evidence.slices.node])
    if activity is None:
        return np.zeros(n_nodes), np.zeros(n_nodes)
    slices = slices.take(_outer(slices.track, slices.start_ns, slices.start_ns + slices.duration_ns))
    ends = (slices.start_ns + slices.duration_ns).astype(np.float64)
    time_ns, busy_ns = max(activity.busy.values(), key=lambda curve: float(curve[1][-1]))
    blocked = np.interp(ends, time_ns, busy_ns) - np.interp(slices.start_ns, time_ns, busy_ns)
    by_node: FloatArray = np.bincount(slices.node, blocked, n_nodes).astype(np.float64)
    return np.bincount(slices.node, minlength=n_nodes).astype(np.float64), by_node


def _of_sums(evidence: Evidence) -> tuple[FloatArray, FloatArray]:
    """The same without a timeline: what calls take beyond a read that finds nothing to wait for.

    Waits that only the sampling of Python shows are not counted there, and not judged.
    """
    tree = evidence.profile.tree
    # Time in a scope belongs to what samples saw below it.
    scopes = evidence.host.waiting & (tree.kind == FrameKind.SCOPE)
    waiting = evidence.host.waiting | below(evidence.profile, scopes) | _copies_that_wait(evidence)
    is_inner = below(evidence.profile, waiting)[np.maximum(tree.parent, 0)] & (tree.parent >= 0)
    calls = np.where(waiting & ~is_inner, evidence.calls, 0.0)
    inside: FloatArray = tree.sum_up(np.where(waiting, evidence.host_ns, 0.0))
    own_ns = np.where(scopes, inside, evidence.host_ns)
    calls = np.where(own_ns < _READ_LEAST_NS * calls, 0.0, calls)  # copies that nobody waits for
    calls += _reads_of_jax(evidence)
    inside = np.where(waiting, inside, tree.sum_up(evidence.host_ns))
    blocked: FloatArray = np.where(calls > 0, np.maximum(inside - _READ_NS * calls, 0.0), 0.0)
    return calls, blocked


def _copies_that_wait(evidence: Evidence) -> BoolArray:
    """Operators that copy little to the GPU in each step, and return when all work before the copy is done: [n_nodes].

    Copies that are long from memory that is not pinned are of a rule of their own.
    """
    profile, tree = evidence.profile, evidence.profile.tree
    copies, parent = evidence.host.copying & (tree.kind == FrameKind.MEMORY), tree.parent
    quick = copies & (staged_copies(evidence)[0] == 0) & ~below(profile, named(profile, "Module._apply".__eq__))
    makes, copied_ns = np.zeros(len(tree), np.bool_), np.zeros(len(tree))
    makes[parent[quick]] = True
    np.add.at(copied_ns, parent[quick], evidence.gpu_ns[quick])
    makes &= evidence.host.copying & (evidence.calls >= WAITS.value * evidence.steps)
    waits_ns = np.where(makes, evidence.recurring_host_ns - copied_ns, 0.0)
    makes &= waits_ns >= _WRITE_NS * evidence.calls
    # Nobody waits longer for the GPU than it works: a host may be slow for other reasons.
    return makes if float(waits_ns[makes].sum()) <= float(evidence.gpu_ns.sum()) else np.zeros(len(tree), np.bool_)


def _reads_of_jax(evidence: Evidence) -> FloatArray:
    """JAX copies to the host from a thread of its own: as many waits as copies, in the code that reads, [n_nodes].

    Sampling tells how long each of its lines waits, and not how often.
    """
    profile, tree = evidence.profile, evidence.profile.tree
    reading = named(profile, _JAX_READS.__contains__) & (tree.kind == FrameKind.PYTHON)
    outer = reading & ~below(profile, reading)[np.maximum(tree.parent, 0)]
    times: FloatArray = np.where(outer, tree.sum_up(evidence.host_ns), 0.0)
    total_ns = float(times.sum())
    copies = named(profile, "copy DtoH".__eq__) & (tree.parent == 0)
    return times * (float(evidence.gpu_count[copies].sum()) / total_ns) if total_ns else times


def _outer(track: Int32Array, start_ns: Int64Array, end_ns: Int64Array) -> BoolArray:
    """Slices that are in no other one of their thread."""
    order = np.lexsort((-end_ns, start_ns, track))
    result = np.zeros(len(track), np.bool_)
    for one in np.unique(track).tolist():
        rows = order[track[order] == one]
        until = np.maximum.accumulate(end_ns[rows])
        result[rows[np.append(True, start_ns[rows][1:] >= until[:-1])]] = True
    return result


RULE = Rule(
    _find,
    "waits for the GPU in each step: item, cpu, nonzero, synchronize",
    (GPU_TIME, IDLE),
    (RECURRING_WAITS, PLAN_SHARE, WAITS),
    "read results less often; copy with non_blocking=True from pinned memory",
    host_time=HostTime.CAUSE,
)
