"""The statement of a program to change where a cause is spread over many lines: the call that holds them."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.causes.host_finding import Cause, host_finding, moved
from bragg.analyze.causes.paths import lines_above
from bragg.analyze.causes.recurring import callers_of, recurs
from bragg.model import Finding, Place
from bragg.model.ids import NodeId
from bragg.model.table import BoolArray, FloatArray

_MOST = 0.8  # of the weight of a call: if one line below it has so much, that line is meant
_PART = 0.1
_N_NODES = 200  # the heaviest hold nearly all of the weight


class _Chain(NamedTuple):
    """The lines of the program above a node, the outermost first, and its weight."""

    lines: list[NodeId]
    weight: float


def statement_finding(evidence: Evidence, nodes: BoolArray, weight: FloatArray, cause: Cause) -> Finding:
    """A finding at the statement that holds most of the weight of these nodes, both [n_nodes].

    Its other places are the lines that it calls, the heaviest lines of all, and those that call it in each step.
    """
    found = host_finding(evidence, nodes, weight, cause)
    place, *called = statement(evidence, nodes, weight) or [Place()]
    if place.node is None:
        return found
    found = replace(found, places=(*called, Place(found.file, found.line, node=found.node), *found.places))
    return moved(found, place, callers_of(evidence, place.node))


def statement(evidence: Evidence, nodes: BoolArray, weight: FloatArray) -> list[Place]:
    """The innermost line that holds most of a weight of these nodes, both [n_nodes], and runs in each step.

    Behind it are the lines that it calls with at least a tenth of its weight. What runs once, as a call of `main()`
    does, is entered: there the heaviest line is meant. None where no line is known.
    """
    chosen = np.flatnonzero(nodes & (weight > 0))
    heaviest = chosen[np.argsort(-weight[chosen], kind="stable")][:_N_NODES].tolist()
    chains = [_Chain(lines_above(evidence.profile, node), float(weight[node])) for node in heaviest]
    chains = [each for each in chains if each.lines]
    found: list[Place] = []
    depth = 0
    while by_line := _by_line(evidence, [each for each in chains if len(each.lines) > depth], depth):
        line, of_line = by_line[0]
        is_most = _weight(of_line) >= _MOST * _weight(chains)
        if not is_most and depth and recurs(evidence, {each.lines[depth - 1] for each in chains}):
            found += [place for place, each in by_line if _weight(each) >= _PART * _weight(chains)]
            break
        found, chains, depth = [line], of_line, depth + 1
    return found


def _by_line(evidence: Evidence, chains: list[_Chain], depth: int) -> list[tuple[Place, list[_Chain]]]:
    """Chains by their lines at a depth, the heaviest line first; its node is the heaviest of that line."""
    frames, frame = evidence.profile.tree.frames, evidence.profile.tree.frame
    by_line: dict[tuple[str, int], list[_Chain]] = {}
    for each in chains:
        row = int(frame[each.lines[depth]])
        by_line.setdefault((frames.file[row], int(frames.line[row])), []).append(each)
    found = [
        (Place(file, line, node=max(of_line, key=lambda each: each.weight).lines[depth]), of_line)
        for (file, line), of_line in by_line.items()
    ]
    return sorted(found, key=lambda each: -_weight(each[1]))


def _weight(chains: list[_Chain]) -> float:
    return sum(each.weight for each in chains)
