"""Turns of the loop of a program whose steps no framework tells: requests that are served, batches that are judged.

The program's text says which lines are in a loop, and the call tree how often operators below these ran. Turns are
counted only where the counts agree: each turn calls some operator once, by the text, and nearly all GPU time of the
loop, without a GPU that of its operators, is in operators that ran in whole multiples of that count.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePath

import numpy as np

from bragg.analyze.causes.text.program_text import FileText, Loop, ProgramText
from bragg.analyze.imports import without_imports
from bragg.analyze.wall.once_a_turn import in_whole_turns, runs_in_no_loop, runs_once
from bragg.grouping.regions import of_compilations
from bragg.model import FrameKind, Profile
from bragg.model.ids import NodeId
from bragg.model.table import BoolArray, FloatArray, Int64Array
from bragg.model.transform import innermost, outermost, with_descendants

LEAST_TURNS = 5
"""Fewer are no steady state."""
# Of the GPU time, without a GPU of the host's, apart from compilations and imports: a loop with less of it is one of
# several parts.
_MOST_WORK = 0.8
# Of the time of a loop that is counted: the rest may run in some turns alone.
_AGREE = 0.9
# Launches in fewer turns than this part of them are those of first turns, which may be so many of all.
_OFTEN, _SELDOM = 0.05, 0.05
_GPU, _HOST = {"gpu_time", "gpu_count"}, {"host_time", "host_count"}
_COMPREHENSIONS = ("comp>", "<genexpr>", "<lambda>")


@dataclass(frozen=True, eq=False)
class Turns:
    """Turns of a loop.

    Attributes:
        place: File and line of the loop.
        header: Its function and its first line, by which it is known again in another version of a program.
        count: How many the program made.
        is_inside: Nodes of the loop: [n_nodes].
        launches: Work of GPUs that a turn starts; 0: none, or not all turns start as much.
        host_ns: Without a GPU, what a turn took of the host's time, on average; 0: a GPU worked.
    """

    place: str
    header: str
    count: int
    is_inside: BoolArray
    launches: float
    host_ns: float


def turns_of(profile: Profile) -> Turns | None:
    """The turns of the outermost loop with nearly all work of a program; None: none is sure."""
    text, needed = ProgramText(profile), _GPU if profile.measured("gpu_time") else _HOST
    if not needed <= profile.metrics.keys() or not text.is_known:
        return None
    loops = _Loops(profile, text)
    for found in loops.candidates():
        count = loops.count(found)
        if count >= LEAST_TURNS:
            return loops.turns(found, count)
    return None


def header_of(loop: Loop) -> str:
    """The first line of a loop, spelled alike however it is written."""
    return ast.unparse(loop).partition("\n")[0]


@dataclass(frozen=True, eq=False)
class _Candidate:
    """A loop and the nodes of its lines: those of the body, and of its first line.

    Attributes:
        file: Its text.
        loop: In that text.
        lines: int64 [n_lines].
    """

    file: FileText
    loop: Loop
    lines: Int64Array


class _Loops:
    """Loops in the program's text that call paths go through."""

    def __init__(self, profile: Profile, text: ProgramText) -> None:
        self._profile, self._tree, self._text = profile, profile.tree, text
        self._is_host = not profile.measured("gpu_time")
        self._launches = self._own("gpu_count")
        self._work_ns = self._own("host_time" if self._is_host else "gpu_time")

    def _own(self, name: str) -> FloatArray:
        """A metric without what compiled and imported: [n_nodes]."""
        found = np.zeros(len(self._tree))
        ran = without_imports(self._profile) if name in self._profile.metrics else None
        return found if ran is None else np.where(of_compilations(self._tree), 0.0, np.nan_to_num(ran.own(name)))

    def candidates(self) -> Iterator[_Candidate]:
        """Loops with most of the work, the outermost first."""
        tree, frames = self._tree, self._tree.frames
        below_ns = tree.sum_up(self._work_ns)
        lines = np.flatnonzero((tree.kind == FrameKind.PYTHON) & (below_ns > 0))
        calls: dict[tuple[int, str, str], list[int]] = {}
        for node in lines[np.argsort(tree.depth[lines], kind="stable")].tolist():
            name, file = frames.name[tree.frame[node]], frames.file[tree.frame[node]]
            if file in self._profile.sources and not name.endswith(_COMPREHENSIONS):
                calls.setdefault((int(tree.parent[node]), name, file), []).append(node)
        for nodes in calls.values():
            if below_ns[nodes].sum() >= _MOST_WORK * below_ns[0]:
                found = [one for one in self._in(nodes) if below_ns[one.lines].sum() >= _MOST_WORK * below_ns[0]]
                if found:  # loops below these are called again and again
                    return iter(found if self._is_called_once(nodes[0]) else [])
        return iter([])

    def _is_called_once(self, node: int) -> bool:
        """Whether no loop is above the function of a line."""
        above = self._tree.path(NodeId(node))[1:-1]
        return all(runs_in_no_loop(self._tree, self._text, each) for each in above)

    def _in(self, nodes: list[int]) -> Iterator[_Candidate]:
        """Loops around the lines of one call of a function, the outermost first."""
        inside: dict[Loop, list[int]] = {}
        files: dict[Loop, FileText] = {}
        for node, (file, statement) in ((node, found) for node in nodes if (found := self._text.at(node))):
            around = file.loops_of(statement)
            if isinstance(statement, Loop):
                around.append(statement)
            for loop in around:
                inside.setdefault(loop, []).append(node)
                files[loop] = file
        ordered = sorted(inside, key=lambda loop: (loop.lineno, -(loop.end_lineno or loop.lineno)))
        yield from (_Candidate(files[loop], loop, np.array(inside[loop])) for loop in ordered)

    def count(self, found: _Candidate) -> int:
        """How many turns a loop made; 0: not sure."""
        counts = self._counts(int(self._tree.depth[found.lines[0]]))
        # Code of the host that calls no operator has no count.
        work_ns = np.where(self._inside(found) & (counts > 0), self._work_ns, 0.0)
        once = runs_once(self._tree, self._text, found.loop, found.lines)
        for count, _ in Counter(counts[once & (counts > 0)].tolist()).most_common():
            if work_ns[in_whole_turns(counts, count)].sum() >= _AGREE * work_ns.sum():
                return int(count)
        return 0

    def _counts(self, depth: int) -> Int64Array:
        """How often the outermost operator below a depth ran that each node is in, or its work and that beside it."""
        tree = self._tree
        beside = np.bincount(tree.parent[1:], weights=self._launches[1:], minlength=len(tree))
        launched = np.where(self._launches > 0, beside[np.maximum(tree.parent, 0)], 0.0)
        if "host_count" not in self._profile.metrics:
            return launched.astype(np.int64)
        called = np.nan_to_num(self._profile.own("host_count").astype(np.float64))
        is_operator = (tree.kind == FrameKind.OPERATOR) & (called > 0) & (tree.depth > depth)
        operator = innermost(tree, np.where(outermost(tree, is_operator), np.arange(len(tree)), -1))
        return np.where(operator >= 0, called[operator], launched).astype(np.int64)

    def turns(self, found: _Candidate, count: int) -> Turns:
        """What is told of a loop."""
        frame, frames = int(self._tree.frame[found.lines[0]]), self._tree.frames
        header = f"{frames.name[frame]}: {header_of(found.loop)}"
        place = f"{PurePath(frames.file[frame]).name}:{found.loop.lineno}"
        is_inside = self._inside(found)
        launches = self._launches[is_inside]
        of_turns = launches[launches >= _OFTEN * count].sum()
        each = float(of_turns / count) if launches.sum() - of_turns <= _SELDOM * launches.sum() else 0.0
        host_ns = float(self._work_ns[is_inside].sum() / count) if self._is_host else 0.0
        return Turns(place, header, count, is_inside, each, host_ns)

    def _inside(self, found: _Candidate) -> BoolArray:
        is_line = np.zeros(len(self._tree), np.bool_)
        is_line[found.lines] = True
        return with_descendants(self._tree, is_line)
