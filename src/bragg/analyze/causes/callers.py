"""Operators that one function calls on lines close to each other, directly or through PyTorch's own Python code."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from bragg.analyze.causes.paths import in_files
from bragg.model import FrameKind, Profile
from bragg.model.table import BoolArray, FloatArray, Int64Array

_TORCH = re.compile(r"[/\\]torch[/\\](?!_dynamo|_inductor).+\.py$")
_MODULES = re.compile(r"[/\\]torch[/\\]nn[/\\]modules[/\\].+\.py$")
_COMPREHENSION = re.compile(r"<(?:list|set|dict)comp>$|<genexpr>$")
_CLOSE = 3  # lines: a result is used soon after it is computed


@dataclass(frozen=True, eq=False)
class Callers:
    """Which lines call operators.

    Attributes:
        profile: Of the program.
    """

    profile: Profile

    @cached_property
    def line(self) -> Int64Array:
        """The node of the line that calls each node, not through an operator: [n_nodes]; 0: there is none."""
        tree = self.profile.tree
        names, files = tree.frames.name, tree.frames.file
        passes_on = np.array(
            [bool(_TORCH.search(file) or _COMPREHENSION.search(name)) for name, file in zip(names, files, strict=True)]
        )[tree.frame]
        scopes = np.array([not name.startswith("[") for name in names])[tree.frame] & (tree.kind == FrameKind.SCOPE)
        passes_on = (passes_on & (tree.kind == FrameKind.PYTHON)) | scopes
        found = self._nearest(~passes_on)[np.maximum(tree.parent, 0)]
        return np.where(tree.kind[found] == FrameKind.PYTHON, found, 0)

    def _nearest(self, chosen: BoolArray) -> Int64Array:
        """The innermost chosen node of each path: that of the node itself, one above it, or the root; [n_nodes]."""
        parent = np.maximum(self.profile.tree.parent, 0).astype(np.int64)
        # Each round skips as many frames as all before it together.
        above = np.where(chosen, np.arange(len(parent)), parent)
        while not np.array_equal(above, above[above]):
            above = above[above]
        return above

    @cached_property
    def is_direct(self) -> BoolArray:
        """Nodes that a line calls, and no module of PyTorch that the line calls: [n_nodes]."""
        tree = self.profile.tree
        modules = in_files(self.profile, _MODULES)
        inner = self._nearest(modules)
        found: BoolArray = (self.line > 0) & (~modules[inner] | (tree.depth[inner] < tree.depth[self.line]))
        return found

    @cached_property
    def function(self) -> Int64Array:
        """A number of the call of the function that calls each node, [n_nodes]: its lines are nodes of their own."""
        return np.where(self.line > 0, self.function_of_line[self.line], -1)

    @cached_property
    def function_of_line(self) -> Int64Array:
        """The same number of the function that has each line, [n_nodes]."""
        tree = self.profile.tree
        rows: dict[tuple[str, str], int] = {}
        names = [rows.setdefault(each, len(rows)) for each in zip(tree.frames.name, tree.frames.file, strict=True)]
        numbers: Int64Array = tree.parent.astype(np.int64) * len(rows) + np.array(names)[tree.frame]
        return numbers

    def by_function(self, nodes: BoolArray) -> Iterator[Int64Array]:
        """Those of some nodes, [n_nodes], that lines call: each call of a function has [its nodes]."""
        chosen = np.flatnonzero(nodes & (self.line > 0))
        chosen = chosen[np.argsort(self.function[chosen], kind="stable")]
        begins = np.flatnonzero(np.diff(self.function[chosen])) + 1
        yield from np.split(chosen, begins) if len(chosen) else ()

    def near(self, nodes: BoolArray, others: BoolArray, *, before: bool = False) -> BoolArray:
        """Those of some nodes whose function calls one of others on a line close to theirs: all [n_nodes].

        Args:
            nodes: Which may be chosen.
            others: What has to be near.
            before: Whether others have to be on the same line or one before it.
        """
        result = np.zeros(len(nodes), np.bool_)
        lines = self.profile.tree.frames.line[self.profile.tree.frame[self.line]]
        near = {int(self.function[of_it[0]]): lines[of_it] for of_it in self.by_function(others)}
        for own in self.by_function(nodes) if near else ():
            other = near.get(int(self.function[own[0]]))
            if other is not None:
                behind = lines[own][:, None] - other[None, :]
                result[own] = ((behind <= _CLOSE) & (behind >= (0 if before else -_CLOSE))).any(axis=1)
        return result

    def counted_near(self, nodes: BoolArray, others: BoolArray, calls: FloatArray) -> FloatArray:
        """How many calls of others the function of some nodes makes on lines close to each of them: all [n_nodes]."""
        result: FloatArray = np.zeros(len(nodes))
        lines = self.profile.tree.frames.line[self.profile.tree.frame[self.line]]
        for inside in self.by_function(nodes | others):
            own, other = inside[nodes[inside]], inside[others[inside]]
            is_close = np.abs(lines[own][:, None] - lines[other][None, :]) <= _CLOSE
            result[own] = is_close @ calls[other]
        return result
