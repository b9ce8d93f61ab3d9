"""Loops of JAX (scan, map, fori_loop, while_loop) whose turns are many and short, or write much that is kept."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator
from dataclasses import replace

import numpy as np

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.causes.host_finding import moved
from bragg.analyze.causes.jitted_calls import in_loops, launches_of_call
from bragg.analyze.causes.needs import GPU_TIME
from bragg.analyze.causes.paths import OPERATIONS, below, children, hottest_place, named, place_of
from bragg.analyze.causes.thresholds import MANY_TURNS, SHORT_LAUNCH
from bragg.analyze.causes.whole_gain import whole_gain
from bragg.analyze.causes.work_finding import Work, work_findings
from bragg.analyze.engine import Rule
from bragg.analyze.rules.operators.jax.state_rule import at_cause
from bragg.code.python_nodes import name_of, parts_of
from bragg.grouping.hlo_names import INDEPENDENT_TURNS, LINEAR_TURNS, TO_LIMIT
from bragg.model import Confidence, Finding, Place
from bragg.model.table import BoolArray, FloatArray

_SHORT = Work(
    "short-turns",
    "a loop of JAX runs many turns of short kernels one after the other",
    "jax.vmap (or lax.map with batch_size) if turns do not need each other; else scan(unroll=...), or "
    "lax.associative_scan",
    0.6,
    Confidence.HEURISTIC,
    least_share=0.1,
    is_launched=True,
)
_CHANGES = {
    "fori_loop": "jax.vmap if turns do not need each other; else fori_loop(unroll=...), if their number is fixed",
    "while_loop": "several iterations in each turn (jax.lax.fori_loop in its body), if a few too many do no harm",
}
"""What to do about loops of other kinds."""
_KEPT = Work(
    "loop-outputs",
    "a loop of JAX writes an output in each turn, which is kept for all turns",
    "return None as the output of scan if nobody needs it, or a smaller one (a number, every tenth state)",
    0.9,
    Confidence.HEURISTIC,
    least_share=0.1,
    is_launched=True,
)
_LIMITED = Work(
    "unreached-tolerance",
    "a loop of JAX takes all turns that its limit allows in each call: its tolerance is below what numbers can tell",
    "a tolerance that the type can reach: a few times jnp.finfo(x.dtype).eps, relative to the values",
    0.8,  # of one pair, 150 turns: 87 %
    Confidence.LIKELY,
    least_share=0.1,
    is_launched=True,
)
_LINEAR = Work(
    "linear-recurrence",
    "a loop of JAX runs short kernels turn by turn for a state that becomes itself times a number, plus another number",
    "jax.lax.associative_scan of the pairs (a, b) of x = a * x + b: lambda one, other: (one[0] * other[0], "
    "other[0] * one[1] + other[1]); jnp.cumsum or cumprod if a is 1, or b is 0",
    0.98,  # of 8,192 turns: 99.9 %
    Confidence.LIKELY,
    least_share=0.1,
    is_launched=True,
)
_AGAIN = 2  # launches in a call: what runs once stands before the loop
_ALL = 0.98  # of the turns, as recordings may begin or end within a call
_STEPS = re.compile(r"dynamic_(?:update_)?index_in_dim")
_WRITES = "dynamic_update_slice"
_UPDATES = {"dynamic_update_index_in_dim", "dynamic_update_slice", "dynamic_update_slice_in_dim", "set"}
"""What a program calls to write in an array that its loop carries."""
_LOOPS = {"scan", "map", *_CHANGES}


def _find_short(evidence: Evidence) -> Iterator[Finding]:
    many = _turns(evidence) >= MANY_TURNS.value
    judged = named(evidence.profile, {INDEPENDENT_TURNS, LINEAR_TURNS}.__contains__)
    others = below(evidence.profile, judged) | _to_limit(evidence)
    kernels = many & (evidence.gpu_ns > 0) & ~_writes(evidence) & ~others
    count, time_ns = float(evidence.gpu_count[kernels].sum()), float(evidence.gpu_ns[kernels].sum())
    if count and time_ns <= SHORT_LAUNCH.value * count:
        # Most of the time of such a loop may be that of launching its kernels.
        gain, loop = whole_gain(evidence, in_loops(evidence), _SHORT.saved), _loop(evidence, many)
        change = next((_CHANGES[name] for name in _called_at(evidence, loop) if name in _CHANGES), _SHORT.change)
        reads = children(evidence.profile, "while", "copy DtoH") & many
        what = f"{_SHORT.what}, and the host reads after each whether it is the last" if reads.any() else _SHORT.what
        for finding in work_findings(evidence, kernels, replace(_SHORT, what=what, change=change)):
            yield replace(moved(finding, loop) if loop.file else finding, gain=gain)


def _find_linear(evidence: Evidence) -> Iterator[Finding]:
    linear = below(evidence.profile, named(evidence.profile, LINEAR_TURNS.__eq__))
    count, time_ns = float(evidence.gpu_count[linear].sum()), float(evidence.gpu_ns[linear].sum())
    if time_ns <= SHORT_LAUNCH.value * count:
        for finding in work_findings(evidence, linear, _LINEAR):
            yield replace(at_cause(evidence, finding, linear), gain=whole_gain(evidence, linear, _LINEAR.saved))


def _find_limited(evidence: Evidence) -> Iterator[Finding]:
    limited = _to_limit(evidence)
    for finding in work_findings(evidence, limited, _LIMITED):
        yield replace(at_cause(evidence, finding, limited), gain=whole_gain(evidence, limited, _LIMITED.saved))


def _to_limit(evidence: Evidence) -> BoolArray:
    """Loops that end by a tolerance below the precision of their numbers, and never did: [n_nodes]."""
    profile, launches = evidence.profile, launches_of_call(evidence)
    found = np.zeros(len(profile.tree), np.bool_)
    for state in {name for name in profile.tree.frames.name if name.startswith(TO_LIMIT)}:
        nodes = below(profile, named(profile, state.__eq__))
        turns = float(launches[nodes & (launches >= _AGAIN)].min(initial=np.inf))
        limit = int(state.removeprefix(TO_LIMIT))
        found |= nodes & (_ALL * limit <= turns <= limit + 1)
    return found


def _find_kept(evidence: Evidence) -> Iterator[Finding]:
    yield from work_findings(evidence, _writes(evidence) & (_turns(evidence) >= MANY_TURNS.value), _KEPT)


def _writes(evidence: Evidence) -> BoolArray:
    """What keeps an output of each turn, with what runs below it: [n_nodes]."""
    profile = evidence.profile
    writes = named(profile, _WRITES.__eq__) & in_loops(evidence)
    return below(profile, writes & ~_at_calls(evidence, writes, _UPDATES))


def _loop(evidence: Evidence, many: BoolArray) -> Place:
    """The line of the loop, which takes its inputs, keeps its outputs and copies what it carries; empty: not known."""
    profile, counts = evidence.profile, evidence.gpu_count
    steps = below(profile, named(profile, _STEPS.fullmatch)) & many
    steps &= ~_at_calls(evidence, steps, _UPDATES)
    loop = hottest_place(profile, steps, counts, OPERATIONS)
    return loop if loop.file else hottest_place(profile, _at_calls(evidence, many, _LOOPS), counts, OPERATIONS)


def _at_calls(evidence: Evidence, nodes: BoolArray, names: Collection[str]) -> BoolArray:
    """Those of some nodes whose line of the program calls one of these: both [n_nodes]."""
    found = np.zeros(len(nodes), np.bool_)
    for node in np.flatnonzero(nodes).tolist():
        found[node] = not _called_at(evidence, place_of(evidence.profile, node, OPERATIONS)).isdisjoint(names)
    return found


def _called_at(evidence: Evidence, place: Place) -> set[str]:
    """Names of what a line of the program calls."""
    file = evidence.text.file(place.file)
    statement = file.statement(place.line) if file else None
    return {name_of(call) for call in parts_of(statement, ast.Call)} if statement else set()


def _turns(evidence: Evidence) -> FloatArray:
    """How often each kernel or copy in a loop runs in a call of its jitted function: [n_nodes]; 0: it is in no loop."""
    return np.where(in_loops(evidence), launches_of_call(evidence), 0.0)


TURNS = Rule(
    _find_short, "loops of JAX with many turns of short kernels", (GPU_TIME,), (MANY_TURNS, SHORT_LAUNCH), _SHORT.change
)
LIMITS = Rule(_find_limited, "loops of JAX that never reach their tolerance", (GPU_TIME,), (), _LIMITED.change)
OUTPUTS = Rule(_find_kept, "loops of JAX that write an output in each turn", (GPU_TIME,), (MANY_TURNS,), _KEPT.change)
LINEAR = Rule(_find_linear, "loops of JAX that run a linear recurrence", (GPU_TIME,), (SHORT_LAUNCH,), _LINEAR.change)
