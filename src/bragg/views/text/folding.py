"""Library frames as one node for each excursion into a library."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from bragg.model import CallTree, FrameKind, FrameTable, Profile
from bragg.model.regroup import Regrouping, regroup
from bragg.model.table import BoolArray, Int64Array
from bragg.views.text.labels import Labels
from bragg.views.text.units import count_text

__all__ = ["FoldedProfile", "fold_libraries", "library_of", "with_library_names"]

_LIBRARY_FILE = re.compile(
    r"[/\\](?:site|dist)-packages[/\\](?P<package>[^/\\.]+)"
    r"|[/\\]lib(?:64)?[/\\]python3\.\d+[/\\](?!(?:site|dist)-packages)"
    r"|[/\\](?P<recorder>bragg)[/\\]record[/\\]"
    r"|^<frozen "
)
_STANDARD = "stdlib"
# They are part of excursions into every other library, so they name only those without another.
_COMMON = (_STANDARD, "bragg")


@dataclass(frozen=True, eq=False)
class FoldedProfile:
    """A profile in which frames of libraries were put together.

    Attributes:
        profile: Nodes that stand for several library frames carry the name of the library and no file.
        n_folded: int64 [n_nodes]: frames of the longest call path that a node stands for; 0 for ordinary nodes.
    """

    profile: Profile
    n_folded: Int64Array

    def name(self, node: int, labels: Labels) -> str:
        """What a node is called, without its place."""
        name = labels.name(int(self.profile.tree.frame[node]))
        n_folded = int(self.n_folded[node])
        return f"[{name}: {count_text(n_folded, 'frame')}]" if n_folded else name

    @classmethod
    def unfolded(cls, profile: Profile) -> FoldedProfile:
        """Every frame on its own; siblings with the same frame are one node here too."""
        merged = regroup(profile.tree).apply(profile)
        return cls(merged, np.zeros(len(merged.tree), np.int64))


def library_of(file: str) -> str:
    """Package that a source file belongs to, `stdlib` for Python's own; empty for the user's files."""
    match = _LIBRARY_FILE.search(file)
    return (match["package"] or match["recorder"] or _STANDARD) if match else ""


def fold_libraries(profile: Profile) -> FoldedProfile:
    """Put together the Python frames between user code and what a library calls, under the name of that library."""
    tree = profile.tree
    is_library, regrouping = _excursions(tree, "{}")
    n_paths = np.bincount(regrouping.target[is_library], minlength=len(regrouping.tree))
    single = is_library & (n_paths[regrouping.target] == 1)
    frame = regrouping.tree.frame.copy()
    frame[regrouping.target[single]] = tree.frame[single]
    renamed = CallTree(regrouping.tree.parent, frame, regrouping.tree.frames)
    n_folded = np.zeros(len(regrouping.tree), np.int64)
    np.maximum.at(n_folded, regrouping.target[is_library], _lengths(tree, is_library)[is_library])
    return FoldedProfile(Regrouping(renamed, regrouping.target).apply(profile), np.where(n_paths > 1, n_folded, 0))


def with_library_names(profile: Profile) -> Profile:
    """Likewise, each under the name `[torch]`, also where only one path leads through it: other runs may have more."""
    return _excursions(profile.tree, "[{}]")[1].apply(profile)


def _excursions(tree: CallTree, pattern: str) -> tuple[BoolArray, Regrouping]:
    """Which nodes are of a library: [n_nodes], and the tree with one node for each excursion, named by the pattern."""
    names, library = _libraries(tree.frames)
    is_library: BoolArray = library[tree.frame] >= 0
    entered = is_library & ~is_library[tree.parent]
    name = _excursion_names(tree, library[tree.frame], entered)
    named = CallTree(
        tree.parent,
        np.where(entered, len(tree.frames) + name, tree.frame).astype(np.int32),
        FrameTable.concatenate([tree.frames, _library_frames(list(map(pattern.format, names)))]),
    )
    return is_library, regroup(named, folded=is_library & ~entered)


def _lengths(tree: CallTree, is_library: BoolArray) -> Int64Array:
    """How many frames of an excursion end at each node: [n_nodes]; 0 outside."""
    length = is_library.astype(np.int64)
    for level in tree.levels[1:]:
        length[level] += np.where(is_library[level], length[tree.parent[level]], 0)
    return length


def _libraries(frames: FrameTable) -> tuple[list[str], Int64Array]:
    """Names of libraries, those of `_COMMON` first, and the one that each frame belongs to; -1: none."""
    found = [
        library_of(file) if kind == FrameKind.PYTHON else ""
        for kind, file in zip(frames.kind.tolist(), frames.file, strict=True)
    ]
    names = list(dict.fromkeys([*_COMMON, *filter(None, found)]))
    number = {name: index for index, name in enumerate(names)}
    return names, np.array([number.get(name, -1) for name in found], np.int64)


def _excursion_names(tree: CallTree, library: Int64Array, entered: BoolArray) -> Int64Array:
    """The names of the excursions that begin at the nodes `entered`, as indices of the libraries: [n_nodes]."""
    start = np.arange(len(tree))
    for level in tree.levels[1:]:
        goes_on = (library[level] >= 0) & ~entered[level]
        start[level] = np.where(goes_on, start[tree.parent[level]], level)
    packages = np.flatnonzero(library >= len(_COMMON))
    first = np.full(len(tree), len(tree))
    np.minimum.at(first, start[packages], packages)
    name: Int64Array = np.append(library, 0)[first]  # without a package: that of Python
    return name


def _library_frames(names: list[str]) -> FrameTable:
    return FrameTable(
        kind=np.full(len(names), FrameKind.PYTHON, np.uint8),
        name=names,
        file=[""] * len(names),
        line=np.zeros(len(names), np.int32),
        device=np.full(len(names), -1, np.int32),
    )
