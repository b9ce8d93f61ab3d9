"""Pieces of code of the host below which nothing is launched, and how long samples saw the host in them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.causes.paths import IMPORTS, below, in_files, named
from bragg.analyze.causes.thresholds import WAITS
from bragg.model import FrameKind
from bragg.model.table import BoolArray

__all__ = ["SAME_MOST", "SAME_SHARE", "SampledCode", "sampled_code", "waited_code"]

SAME_SHARE, SAME_MOST = 0.5, 1.3
"""Samples stand for 10 ms each: code that is not so long as the wait, or longer, is not what is waited for."""


@dataclass(frozen=True, eq=False)
class SampledCode:
    """Code that one line calls, and below which nothing is launched.

    Attributes:
        nodes: [n_nodes].
        time_ns: Of the host in it, by samples.
    """

    nodes: BoolArray
    time_ns: float


def sampled_code(evidence: Evidence, others: BoolArray) -> Iterator[SampledCode]:
    """Pieces of code that launch nothing, by the function that a line with launches calls.

    Of a function that launches, each of its other lines is a piece.

    Args:
        evidence: Of a profile.
        others: What is not meant: [n_nodes].
    """
    tree = evidence.profile.tree
    is_code = np.isin(tree.kind, (FrameKind.PYTHON, FrameKind.STATE))
    imports = below(evidence.profile, in_files(evidence.profile, IMPORTS))
    starts = evidence.profile.tree.sum_up(imports.astype(np.int64)) > 0  # a line that imports does so once
    quiet = ~evidence.has_work & ~others & is_code & ~starts
    above = np.maximum(tree.parent, 0)
    tops = np.flatnonzero(quiet & ~quiet[above])
    time_ns = tree.sum_up(np.where(quiet, evidence.sampled_ns, 0.0))
    launching = {
        (int(above[node]), tree.frames.name[tree.frame[node]])
        for node in np.flatnonzero(evidence.has_work & (tree.kind == FrameKind.PYTHON)).tolist()
    }
    pieces: dict[tuple[int, str, int], list[int]] = {}
    for node in tops.tolist():
        frame = int(tree.frame[node])
        name = tree.frames.name[frame]
        line = int(tree.frames.line[frame]) if (int(above[node]), name) in launching else 0
        pieces.setdefault((int(above[node]), name, line), []).append(node)
    for nodes in pieces.values():
        chosen = np.zeros(len(tree), np.bool_)
        chosen[nodes] = True
        yield SampledCode(chosen, float(time_ns[nodes].sum()))


def waited_code(evidence: Evidence, wait_ns: float, others: BoolArray | None = None) -> SampledCode | None:
    """The code that takes most of the time, of what takes about as long as the GPU waits.

    Args:
        evidence: Of a profile.
        wait_ns: How long it waits.
        others: What else is not meant: [n_nodes].
    """
    host = evidence.host
    # The main thread waits while the engine of autograd launches; what makes a model, or starts CUDA, does not recur.
    engine = named(evidence.profile, ("_engine_run_backward", "_lazy_init").__contains__)
    is_rare = (evidence.calls > 0) & (evidence.calls < WAITS.value * evidence.steps)
    once = below(evidence.profile, engine | (is_rare & (evidence.profile.tree.kind == FrameKind.OPERATOR)))
    left_out = host.input | host.compilation | host.output | host.waiting | host.allocation | once
    if others is not None:
        left_out = left_out | others
    fitting = [
        each for each in sampled_code(evidence, left_out) if SAME_SHARE * wait_ns <= each.time_ns <= SAME_MOST * wait_ns
    ]
    return max(fitting, key=lambda each: each.time_ns, default=None)
