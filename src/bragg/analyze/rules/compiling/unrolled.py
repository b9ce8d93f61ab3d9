"""Loops of Python in jitted functions, whose turns JAX compiles one by one."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.causes.jitted_calls import in_loops, launches_of_call
from bragg.analyze.causes.needs import GPU_COUNT, IDLE
from bragg.analyze.causes.paths import OPERATIONS, below, hottest_place, named, operation_line
from bragg.analyze.causes.thresholds import MANY_UNROLLED, MUCH_COMPILING
from bragg.analyze.engine import Rule
from bragg.model import Confidence, Finding, FrameKind, Gain, Quantity, Severity
from bragg.model.table import BoolArray

# Primitives of JAX that launch many kernels each.
_OF_LIBRARIES = re.compile(r"lu|cholesky|triangular_solve|geqrf|householder_product|eigh?|svd|sort|fft")
_SAVED = 0.8  # what is left compiles one turn
_CHANGE = (
    "jax.lax.scan over stacked weights, or fori_loop: XLA compiles one turn; or fewer turns in one jitted function"
)


def _find(evidence: Evidence) -> Iterator[Finding]:
    profile, wall_ns = evidence.profile, evidence.profile.run.duration_ns
    if not evidence.compiling.any():
        return
    compiled_ns = float(evidence.waits_of_run_ns[evidence.compiling].sum())
    if not wall_ns or compiled_ns < MUCH_COMPILING.value * wall_ns:
        return
    launches = np.where(_compiled_each(evidence), launches_of_call(evidence), 0.0)
    place = hottest_place(profile, launches > 0, launches, OPERATIONS)
    key = (place.file, place.line)
    at_line = [n for n in np.flatnonzero(launches).tolist() if operation_line(evidence.profile, n) == key]
    turns = float(launches[at_line].sum())
    if not place.file or turns < MANY_UNROLLED.value:
        return
    yield Finding(
        "unrolled-loop",
        Severity.WARNING,
        f"one line of a jitted function launches {turns:,.0f} kernels a call, each compiled by itself: compiling takes "
        f"{compiled_ns / 1e9:.2g} s",
        _CHANGE,
        node=place.node,
        file=place.file,
        line=place.line,
        evidence=(Quantity("launches of the line a call", turns), Quantity("compiling", compiled_ns, "ns")),
        gain=Gain(min(compiled_ns, wall_ns) * _SAVED, wall_ns, is_once=True),
        confidence=Confidence.HEURISTIC,
    )


def _compiled_each(evidence: Evidence) -> BoolArray:
    """Kernels that XLA compiled one by one, [n_nodes]: not those of loops, of libraries, or copies of its own."""
    profile = evidence.profile
    of_libraries = below(profile, named(profile, _OF_LIBRARIES.fullmatch))
    found: BoolArray = (profile.tree.kind == FrameKind.KERNEL) & ~in_loops(evidence) & ~of_libraries
    return found


RULE = Rule(
    _find,
    "loops of Python in jitted functions, compiled turn by turn",
    (GPU_COUNT, IDLE),
    (MANY_UNROLLED, MUCH_COMPILING),
    _CHANGE,
)
