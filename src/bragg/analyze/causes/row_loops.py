"""Loops over the rows of a tensor: what runs for each row."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.causes.host_steps import host_steps
from bragg.analyze.causes.paths import below, children, named, place_of
from bragg.analyze.causes.text.text_calls import calls_at
from bragg.analyze.causes.thresholds import MANY_ROWS, RECURRING, WAITS
from bragg.model import CallTree, FrameKind, Place
from bragg.model.ids import NodeId
from bragg.model.table import BoolArray, FloatArray

# Slices of a program whose steps are not known may be batches.
_TAKES_ROW, _TAKES = re.compile("aten::select"), re.compile(r"aten::(?:select|slice|narrow)")


class RowLoop(NamedTuple):
    """A function that takes tensors apart.

    Attributes:
        rows: How many in all; where `zip` takes tensors together, of one of them.
        tensors: How many tensors, of which no turn takes two.
        nodes: Operators that run for each row, with what is below them: [n_nodes].
        code: The code between the function and these, and what takes rows: [n_nodes].
        lines: Lines of the function: [n_nodes].
        places: Where the loops are; empty: not known.
    """

    rows: float
    tensors: float
    nodes: BoolArray
    code: BoolArray
    lines: BoolArray
    places: tuple[Place, ...] = ()


def loops_over_rows(evidence: Evidence) -> BoolArray:
    """What runs for each row of a tensor: [n_nodes]."""
    found = np.zeros(len(evidence.profile.tree), np.bool_)
    for loop in row_loops(evidence):
        found |= loop.nodes
    return found


def row_loops(evidence: Evidence) -> Iterator[RowLoop]:
    """Those that take many rows."""
    yield from _iterations(evidence)
    yield from _indexing(evidence)


def _indexing(evidence: Evidence) -> Iterator[RowLoop]:
    """Functions that take rows by their numbers, many for each call: other operators of theirs run once a call."""
    profile, callers, calls = evidence.profile, evidence.callers, evidence.calls
    n_steps = _n_steps(evidence)
    called = (callers.line > 0) & (profile.tree.kind == FrameKind.OPERATOR) & evidence.host.launching
    takes = called & callers.is_direct & named(profile, (_TAKES if n_steps else _TAKES_ROW).fullmatch)
    works = _works(evidence) & ~takes
    least, every = WAITS.value * n_steps or RECURRING.value, np.arange(len(calls))
    for inside in callers.by_function(called):
        taken, recurs = calls[inside[takes[inside]]], calls[inside][calls[inside] >= least]
        once = float(recurs.min(initial=np.inf))
        looped = inside[works[inside] & (calls[inside] >= MANY_ROWS.value * once)]
        # Some of what runs for a row may run for a few rows alone.
        rows = float(np.median(calls[looped])) if len(looped) else np.inf
        if taken.max(initial=0) < rows:
            continue
        nodes, nothing = below(profile, np.isin(every, looped)), np.zeros(len(calls), np.bool_)
        yield RowLoop(rows, once, nodes, nothing, np.isin(every, callers.line[looped]))


def _iterations(evidence: Evidence) -> Iterator[RowLoop]:
    """Each function that iterates over tensors of many rows, as far as PyTorch announces it by `unbind`."""
    profile, tree = evidence.profile, evidence.profile.tree
    taken = children(profile, "Tensor.__iter__", "aten::unbind")
    selects = children(profile, "aten::unbind", "aten::select")
    lines = tree.parent[tree.parent[taken]]
    for parent, name, file in sorted({_function(evidence, line) for line in lines[lines > 0].tolist()}):
        siblings = np.flatnonzero((tree.parent == parent) & (tree.kind == FrameKind.PYTHON)).tolist()
        body = np.zeros(len(tree), np.bool_)
        body[[node for node in siblings if _function(evidence, node) == (parent, name, file)]] = True
        inside = below(profile, body)
        rows, tensors = (float(evidence.calls[inside & each].sum()) for each in (selects, taken))
        if not tensors or rows < MANY_ROWS.value * tensors:
            continue
        takes = below(profile, taken)
        works = inside & (tree.kind == FrameKind.OPERATOR) & _works(evidence) & ~takes
        loops = sorted(set(lines.tolist()) & set(np.flatnonzero(body).tolist()))
        together = _taken_together(evidence, loops, rows, evidence.calls[works])
        rows, tensors = rows / together, tensors / together
        often = works & (evidence.calls >= rows)
        above = inside & ~body & (tree.sum_up(often.astype(np.int64)) > 0)
        code = above | (inside & takes) | _parents(tree, taken & inside)
        places = tuple(place_of(profile, NodeId(each)) for each in loops)
        yield RowLoop(rows, tensors, below(profile, often), code, body, places)


def _taken_together(evidence: Evidence, loops: list[int], rows: float, calls: FloatArray) -> int:
    """Of how many tensors each turn takes a row, as `zip` does: most of what loops call runs so much less often.

    Args:
        evidence: Of the profile.
        loops: Lines that iterate.
        rows: Of all tensors.
        calls: Of operators inside: [n_operators].
    """
    statements = [at[1] for line in loops if (at := evidence.text.at(line))]
    heads = [each.iter if isinstance(each, ast.For) else each for each in statements]
    zips = [max((len(each.args) for each in calls_at(head, "zip")), default=1) for head in heads]
    fits = {each: int(np.isclose(calls * each, rows, rtol=0.01).sum()) for each in range(1, min(zips, default=1) + 1)}
    return max(fits, key=lambda each: (fits[each], each if fits[each] else -each))


def _parents(tree: CallTree, nodes: BoolArray) -> BoolArray:
    found = np.zeros(len(nodes), np.bool_)
    found[tree.parent[nodes]] = True
    return found


def _works(evidence: Evidence) -> BoolArray:
    """Nodes whose operators compute something: on a GPU where there is one."""
    return evidence.has_work if evidence.idle_ns is not None else np.ones(len(evidence.profile.tree), np.bool_)


def _n_steps(evidence: Evidence) -> float:
    steps = host_steps(evidence)
    return steps.made if steps else evidence.n_steps


def _function(evidence: Evidence, line: int) -> tuple[int, str, str]:
    """The frames of one function differ by line: what is above them, its name and its file."""
    tree = evidence.profile.tree
    frame = int(tree.frame[line])
    return int(tree.parent[line]), tree.frames.name[frame], tree.frames.file[frame]
