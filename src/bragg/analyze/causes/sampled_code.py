"""Pieces of code of the host below which nothing is launched, and how long samples saw the host in them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.causes.paths import IMPORTS, below, in_files
from bragg.model import FrameKind
from bragg.model.table import BoolArray

__all__ = ["SampledCode", "sampled_code"]


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
