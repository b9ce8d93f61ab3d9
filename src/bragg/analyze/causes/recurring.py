"""Lines that run again and again, apart from those that begin a program."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from bragg.analyze.causes.facts import Facts
from bragg.analyze.causes.paths import below, lines_above, place_of
from bragg.model import FrameKind, Place
from bragg.model.ids import NodeId

_OFTEN = 3  # calls: what begins a program calls some operators once or twice
_N_CALLERS = 3


def callers_of(facts: Facts, node: NodeId) -> list[Place]:
    """The lines of the program that call that of a node in each step, the nearest first, at most three."""
    lines = lines_above(facts.profile, node)[:-1][-_N_CALLERS:]
    return [place_of(facts.profile, line) for line in reversed(lines) if recurs(facts, [line])]


def recurs(facts: Facts, lines: Collection[NodeId]) -> bool:
    """Whether all operators below some lines are called again and again."""
    tree, counts = facts.profile.tree, facts.profile.metrics.get("host_count")
    if counts is None:
        return True
    chosen = np.zeros(len(tree), np.bool_)
    chosen[list(lines)] = True
    calls = np.nan_to_num(counts.own.astype(np.float64))
    operators = below(facts.profile, chosen) & (tree.kind == FrameKind.OPERATOR) & ~facts.compiling & (calls > 0)
    return bool((calls[operators] >= _OFTEN).all())
