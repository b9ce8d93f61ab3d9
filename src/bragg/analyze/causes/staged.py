"""Copies from memory of the host that is not pinned: the call lasts as long as the copy."""

from __future__ import annotations

import numpy as np

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.causes.paths import below, named
from bragg.analyze.causes.sampled_code import waited_code
from bragg.analyze.causes.thresholds import STAGED_COPY, WAITS, WRITING
from bragg.grouping.hlo_names import CALLS
from bragg.model.table import BoolArray, FloatArray

# A call for pinned memory returns after microseconds.
_STAGED = 0.5


def staged_copies(evidence: Evidence) -> tuple[FloatArray, FloatArray]:
    """Of each node, how many long copies whose calls lasted as long, and how long: each [n_nodes]."""
    return _of_timeline(evidence) if evidence.has_timeline else _of_sums(evidence)


def jitted_with_copies(evidence: Evidence) -> tuple[BoolArray, BoolArray]:
    """JAX's jitted functions that copy an argument from the host at each call, and these copies: each [n_nodes].

    None where the program has code between the calls that takes as long as the GPU waits.
    """
    profile, parent = evidence.profile, evidence.profile.tree.parent
    jitted = named(profile, lambda name: name.startswith(CALLS))
    above = np.maximum(parent, 0)
    calls = np.maximum(evidence.calls[above], WAITS.value * evidence.steps)
    is_long = evidence.gpu_ns >= STAGED_COPY.value * calls  # of weights each may be short
    copies = named(profile, "copy HtoD".__eq__) & jitted[above] & is_long & (evidence.gpu_count >= WAITS.value * calls)
    found = np.zeros(len(parent), np.bool_)
    found[above[copies]] = True
    wait_ns = float(evidence.code_wait_ns[found].sum())
    within_calls = below(profile, found) | named(profile, "[waiting]".__eq__)
    if wait_ns >= WRITING.value * evidence.wall_ns and waited_code(evidence, wait_ns, within_calls):
        return np.zeros_like(found), np.zeros_like(found)
    return found, copies


def _of_timeline(evidence: Evidence) -> tuple[FloatArray, FloatArray]:
    slices, n_nodes = evidence.slices, len(evidence.profile.tree)
    is_copy = named(evidence.profile, "copy HtoD".__eq__)[slices.node] & evidence.on_gpu
    copies = slices.take(is_copy & (slices.duration_ns >= STAGED_COPY.value) & (slices.correlation != 0))
    calls = slices.take(evidence.on_host & (slices.correlation != 0))
    if not len(copies) or not len(calls):
        return np.zeros(n_nodes), np.zeros(n_nodes)
    calls = calls.take(np.argsort(calls.correlation, kind="stable"))
    row = np.minimum(np.searchsorted(calls.correlation, copies.correlation), len(calls) - 1)
    staged = copies.take(
        (calls.correlation[row] == copies.correlation) & (calls.duration_ns[row] >= _STAGED * copies.duration_ns)
    )
    count = np.bincount(staged.node, minlength=n_nodes).astype(np.float64)
    return count, np.bincount(staged.node, staged.duration_ns, n_nodes).astype(np.float64)


def _of_sums(evidence: Evidence) -> tuple[FloatArray, FloatArray]:
    """The same without a timeline: by the mean copy of a node, and the time of the operator or call above it.

    A model is moved to its GPU once, with one copy for each parameter.
    """
    profile, tree = evidence.profile, evidence.profile.tree
    often = (evidence.gpu_count >= WAITS.value * evidence.steps) & ~below(
        profile, named(profile, "Module._apply".__eq__)
    )
    is_copy = named(profile, "copy HtoD".__eq__) & (evidence.gpu_count > 0) & (tree.parent >= 0)
    above = np.maximum(tree.parent, 0)
    is_long = evidence.gpu_ns >= STAGED_COPY.value * evidence.gpu_count
    lasts = (evidence.calls[above] > 0) & (evidence.host_ns[above] >= _STAGED * evidence.gpu_ns)
    staged = is_copy & often & is_long & lasts
    return np.where(staged, evidence.gpu_count, 0.0), np.where(staged, evidence.gpu_ns, 0.0)
