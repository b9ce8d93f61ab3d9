"""Lines at which the steps of a program without a GPU wait."""

from __future__ import annotations

import ast
import re

import numpy as np

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.causes.host_steps import host_steps
from bragg.analyze.causes.paths import in_files
from bragg.analyze.causes.text.program_text import call_name
from bragg.analyze.causes.thresholds import WAITS
from bragg.code.python_nodes import parts_of
from bragg.grouping.hlo_names import CALLS
from bragg.model import FrameKind
from bragg.model.host_time import WAIT_TIME
from bragg.model.table import BoolArray

# They wait for what they compute themselves, in threads of their own.
_COMPUTES = re.compile(r"[/\\](?:jax|jaxlib|torch)[/\\]")
# Methods of JAX's arrays, and NumPy where it reads one: native code that waits, below no frame of JAX.
_READS_OF_JAX = frozenset({"block_until_ready", "asarray", "array"})
# Of all that is waited: less is not looked at.
_LITTLE = 0.01


def recurring_waits(evidence: Evidence) -> BoolArray:
    """Nodes that wait in Python code, for nothing that is computed, loaded or written, in the steps: [n_nodes].

    Samples do not tell how often a line waited, but not more often than they were taken. It is in the steps where its
    function, or one that called it, does earlier what each step does: what comes before the first step is not. Neither
    is what a function waits for before it does that, unless it did so as often as there are steps, and one that called
    it does such things elsewhere, too: it then makes a batch for what follows.
    """
    profile, tree, host = evidence.profile, evidence.profile.tree, evidence.host
    found: BoolArray = np.zeros(len(tree), np.bool_)
    steps = host_steps(evidence)
    if steps is None or WAIT_TIME not in profile.metrics:
        return found
    is_often = (evidence.calls >= WAITS.value * steps.made) & (tree.kind != FrameKind.PYTHON)
    has_steps = tree.sum_up(is_often.astype(np.int64)) > 0
    computes = in_files(profile, _COMPUTES)
    has_jax = any(name.startswith(CALLS) for name in tree.frames.name)
    waited_ns = np.where(host.input | host.compilation | host.output, 0, profile.own(WAIT_TIME))
    samples = profile.own("samples") if "samples" in profile.metrics else np.zeros(len(tree))
    waits = (waited_ns > 0) & (waited_ns >= _LITTLE * waited_ns.sum())
    for node in np.flatnonzero(waits).tolist():
        code = int(tree.parent[node]) if tree.kind[node] == FrameKind.STATE else node
        is_read = has_jax and _reads_jax(evidence, code)
        if tree.kind[code] == FrameKind.PYTHON and not computes[code] and not is_read:
            is_each = samples[node] >= WAITS.value * steps.made
            found[node] = _is_in_steps(evidence, code, has_steps, is_each=bool(is_each))
    return found


def _reads_jax(evidence: Evidence, code: int) -> bool:
    """Whether the statement of a line reads an array of JAX, or waits for it."""
    _, statement = evidence.text.at(code) or (None, None)
    calls = parts_of(statement, ast.Call) if statement else ()
    return any(call_name(each) in _READS_OF_JAX for each in calls)


def _is_in_steps(evidence: Evidence, code: int, has_steps: BoolArray, *, is_each: bool) -> bool:
    """Whether the innermost function around this code that makes steps began with one before it.

    Or, if each step may have waited, whether one further out makes them on several lines.
    """
    tree = evidence.profile.tree
    frames, line = tree.frames, tree.frames.line[tree.frame]
    is_outer = False
    while code > 0:
        frame = int(tree.frame[code])
        beside = np.flatnonzero(has_steps & (tree.parent == tree.parent[code]) & (tree.kind == FrameKind.PYTHON))
        own = [
            node
            for node in beside.tolist()
            if (frames.name[tree.frame[node]], frames.file[tree.frame[node]])
            == (frames.name[frame], frames.file[frame])
        ]
        if own and not is_outer:
            is_in_steps = bool(line[own].min() <= line[code])
            if is_in_steps or not is_each:
                return is_in_steps
            is_outer = True
        elif own and line[own].min() < line[own].max():
            return True
        code = int(tree.parent[code])
    return False
