"""Library frames as one node for each excursion into a library."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from bragg.model import CallTree, FrameKind, FrameTable, Profile
from bragg.model.regroup import Regrouping, regroup
from bragg.model.table import BoolArray, Int64Array
from bragg.views.terminal.labels import Labels
from bragg.views.terminal.units import count_text

__all__ = ["FoldedProfile", "fold_libraries", "library_of"]

_LIBRARY_FILE = re.compile(
    r"[/\\](?:site|dist)-packages[/\\](?P<package>[^/\\.]+)"
    r"|[/\\]lib(?:64)?[/\\]python3\.\d+[/\\](?!(?:site|dist)-packages)"
    r"|^<frozen "
)


@dataclass(frozen=True, eq=False)
class FoldedProfile:
    """A profile in which frames of libraries were put together.

    Attributes:
        profile: Nodes that stand for several library frames carry the name of the library and no file.
        n_folded: int64 [n_nodes]: call paths that a node stands for; 0 for ordinary nodes.
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
        """The profile as it is."""
        return cls(profile, np.zeros(len(profile.tree), np.int64))


def library_of(file: str) -> str:
    """Package that a source file belongs to, `stdlib` for Python's own; empty for the user's files."""
    match = _LIBRARY_FILE.search(file)
    return (match["package"] or "stdlib") if match else ""


def fold_libraries(profile: Profile) -> FoldedProfile:
    """Put together the Python frames between user code and what a library calls.

    The first frame of an excursion names the library; a library that it calls on the way is part of the same excursion.
    """
    tree = profile.tree
    libraries = [
        library_of(file) if kind == FrameKind.PYTHON else ""
        for kind, file in zip(tree.frames.kind.tolist(), tree.frames.file, strict=True)
    ]
    is_library = np.array([bool(name) for name in libraries], np.bool_)[tree.frame]
    entered = is_library & ~is_library[tree.parent]
    regrouping = regroup(_with_library_frames(tree, libraries, entered), folded=is_library & ~entered)
    n_folded = np.bincount(regrouping.target[is_library], minlength=len(regrouping.tree))
    single = is_library & (n_folded[regrouping.target] == 1)
    frame = regrouping.tree.frame.copy()
    frame[regrouping.target[single]] = tree.frame[single]
    renamed = CallTree(regrouping.tree.parent, frame, regrouping.tree.frames)
    return FoldedProfile(Regrouping(renamed, regrouping.target).apply(profile), np.where(n_folded > 1, n_folded, 0))


def _with_library_frames(tree: CallTree, libraries: list[str], entered: BoolArray) -> CallTree:
    """The tree in which every first library frame is that of its library."""
    names = sorted(set(filter(None, libraries)))
    n_frames, n_names = len(tree.frames), len(names)
    rows = FrameTable(
        kind=np.full(n_names, FrameKind.PYTHON, np.uint8),
        name=names,
        file=[""] * n_names,
        line=np.zeros(n_names, np.int32),
        device=np.full(n_names, -1, np.int32),
    )
    row_of_name = {name: n_frames + index for index, name in enumerate(names)}
    row_of_frame = np.array([row_of_name.get(name, index) for index, name in enumerate(libraries)], np.int32)
    frame = np.where(entered, row_of_frame[tree.frame], tree.frame)
    return CallTree(tree.parent, frame, FrameTable.concatenate([tree.frames, rows]))
