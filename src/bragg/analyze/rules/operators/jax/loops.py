"""Loops of JAX (scan, map, fori_loop, while_loop) whose turns are many and short, or write much that is kept."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.causes.host_finding import moved
from bragg.analyze.causes.jitted_calls import in_loops, launches_of_call
from bragg.analyze.causes.needs import GPU_TIME
from bragg.analyze.causes.paths import OPERATIONS, below, hottest_place, named
from bragg.analyze.causes.thresholds import MANY_TURNS, SHORT_LAUNCH
from bragg.analyze.causes.whole_gain import whole_gain
from bragg.analyze.causes.work_finding import Work, work_findings
from bragg.analyze.engine import Rule
from bragg.analyze.rules.operators.jax.state_rule import at_cause
from bragg.grouping.hlo_names import INDEPENDENT_TURNS, TO_LIMIT
from bragg.model import Confidence, Finding
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
_AGAIN = 2  # launches in a call: what runs once stands before the loop
_ALL = 0.98  # of the turns, as recordings may begin or end within a call
_STEPS = re.compile(r"dynamic_(?:update_)?index_in_dim")
_WRITES = "dynamic_update_slice"


def _find_short(evidence: Evidence) -> Iterator[Finding]:
    many = _turns(evidence) >= MANY_TURNS.value
    others = below(evidence.profile, named(evidence.profile, INDEPENDENT_TURNS.__eq__)) | _to_limit(evidence)
    kernels = many & (evidence.gpu_ns > 0) & ~_writes(evidence) & ~others
    count, time_ns = float(evidence.gpu_count[kernels].sum()), float(evidence.gpu_ns[kernels].sum())
    if count and time_ns <= SHORT_LAUNCH.value * count:
        # Most of the time of such a loop may be that of launching its kernels.
        gain = whole_gain(evidence, in_loops(evidence), _SHORT.saved)
        for finding in work_findings(evidence, kernels, _SHORT):
            yield replace(_at_loop(evidence, finding, many), gain=gain)


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
    return below(profile, named(profile, _WRITES.__eq__) & in_loops(evidence))


def _at_loop(evidence: Evidence, finding: Finding, many: BoolArray) -> Finding:
    """At the line of the loop, which takes its inputs and keeps its outputs; its turns are other places."""
    profile = evidence.profile
    steps = below(profile, named(profile, _STEPS.fullmatch)) & many
    loop = hottest_place(profile, steps, evidence.gpu_count, OPERATIONS)
    return moved(finding, loop) if loop.file else finding


def _turns(evidence: Evidence) -> FloatArray:
    """How often each kernel or copy in a loop runs in a call of its jitted function: [n_nodes]; 0: it is in no loop."""
    return np.where(in_loops(evidence), launches_of_call(evidence), 0.0)


TURNS = Rule(
    _find_short, "loops of JAX with many turns of short kernels", (GPU_TIME,), (MANY_TURNS, SHORT_LAUNCH), _SHORT.change
)
LIMITS = Rule(_find_limited, "loops of JAX that never reach their tolerance", (GPU_TIME,), (), _LIMITED.change)
OUTPUTS = Rule(_find_kept, "loops of JAX that write an output in each turn", (GPU_TIME,), (MANY_TURNS,), _KEPT.change)
