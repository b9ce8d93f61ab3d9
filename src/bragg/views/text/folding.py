"""Library frames as one node for each excursion into a library."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bragg.model import CallTree, FrameKind, FrameTable, Profile
from bragg.model.ids import NodeId
from bragg.model.regroup import Regrouping, regroup
from bragg.model.table import BoolArray, Int64Array
from bragg.views.text.folding_rules import STANDARD, annotates, is_kept, library_of
from bragg.views.text.labels import Labels
from bragg.views.text.repeated_calls import without_repeated_calls
from bragg.views.text.units import count_text

# They are part of excursions into every other library, so they name only those without another.
_COMMON = (STANDARD, "bragg")
# What a node is in `FoldMarks` if it does not begin an excursion.
OWN_ROW, INSIDE, PART = -1, -2, -3
# Between a library and what was called in it.
_CALLED = ": "


@dataclass(frozen=True, eq=False)
class FoldedProfile:
    """A profile in which frames of libraries were put together.

    Attributes:
        profile: Nodes that stand for several library frames carry the name of the library, with that of the function
            which was called if it has a public one, and no file.
        n_folded: int64 [n_nodes]: frames of the longest call path that a node stands for; 0 for ordinary nodes.
    """

    profile: Profile
    n_folded: Int64Array

    def name(self, node: NodeId, labels: Labels) -> str:
        """Label of a node, without its place."""
        name = labels.name(self.profile.tree.frame_of(node))
        n_folded = int(self.n_folded[node])
        if not n_folded:
            return name
        return f"[{name}]" if _CALLED in name else f"[{name}{_CALLED}{count_text(n_folded, 'frame')}]"

    @classmethod
    def unfolded(cls, profile: Profile) -> FoldedProfile:
        """Every frame on its own; siblings with the same frame are one node here too."""
        merged = regroup(profile.tree).apply(profile)
        return cls(merged, np.zeros(len(merged.tree), np.int64))


@dataclass(frozen=True, eq=False)
class FoldMarks:
    """How `fold_libraries` folds each node of a tree, for readers that fold it themselves.

    Attributes:
        libraries: Their names, alone and with each public function that was called: `numpy`, `numpy: svd`.
        mark: int64 [n_nodes]: the library whose excursion begins at a node, OWN_ROW, INSIDE (one more frame of the
            excursion around it) or PART (of the node above, without being a frame more).
    """

    libraries: list[str]
    mark: Int64Array


def fold_marks(profile: Profile) -> FoldMarks:
    """What stands for each node of a profile once its libraries are folded."""
    merging = without_repeated_calls(profile.tree)
    merged = merging.apply(profile) if merging else profile
    found = _excursions(merged)
    single = found.is_library & (found.n_paths[found.regrouping.target] == 1)
    mark = np.where(found.is_library, np.where(found.entered, found.name, INSIDE), OWN_ROW)
    mark[single] = OWN_ROW
    mark[found.is_part] = PART
    if not merging:
        return FoldMarks(found.libraries, mark)
    is_merged = merging.target == merging.target[profile.tree.parent]
    is_merged[0] = False
    return FoldMarks(found.libraries, np.where(is_merged, PART, mark[merging.target]))


def fold_libraries(profile: Profile, keep: Sequence[re.Pattern[str]] = ()) -> FoldedProfile:
    """Put together the Python frames between user code and what a library calls, under the name of that library.

    Args:
        profile: What to fold.
        keep: Names of frames that stay, besides those of `folding_rules`.
    """
    profile = _without_repeated_calls(profile)
    tree, found = profile.tree, _excursions(profile, keep)
    is_library, regrouping, n_paths = found.is_library, found.regrouping, found.n_paths
    single = is_library & (n_paths[regrouping.target] == 1)
    frame = regrouping.tree.frame.copy()
    frame[regrouping.target[single]] = tree.frame[single]
    renamed = CallTree(regrouping.tree.parent, frame, regrouping.tree.frames)
    n_folded = np.zeros(len(regrouping.tree), np.int64)
    np.maximum.at(n_folded, regrouping.target[is_library], _lengths(tree, is_library)[is_library])
    return FoldedProfile(Regrouping(renamed, regrouping.target).apply(profile), np.where(n_paths > 1, n_folded, 0))


def with_library_names(profile: Profile) -> Profile:
    """The profile with each excursion named `[torch]`, even where one path leads through it, since other runs vary."""
    profile = _without_repeated_calls(profile)
    return _excursions(profile, names_functions=False).regrouping.apply(profile)


def _without_repeated_calls(profile: Profile) -> Profile:
    regrouping = without_repeated_calls(profile.tree)
    return regrouping.apply(profile) if regrouping else profile


@dataclass(frozen=True, eq=False)
class _Excursions:
    """Where call paths lead into libraries.

    Attributes:
        libraries: Their names, see `FoldMarks`; in brackets where functions are not named.
        is_library: [n_nodes]: nodes of excursions, except those that are parts of what is above them.
        entered: [n_nodes]: where excursions begin.
        is_part: [n_nodes]: library nodes that are parts of modules, or of functions that begin scopes.
        name: [n_nodes]: the library that an excursion which begins here is named after.
        regrouping: The tree with one node for each excursion.
    """

    libraries: list[str]
    is_library: BoolArray
    entered: BoolArray
    is_part: BoolArray
    name: Int64Array
    regrouping: Regrouping

    @property
    def n_paths(self) -> Int64Array:
        """Nodes of libraries that each node of the new tree stands for."""
        return np.bincount(self.regrouping.target[self.is_library], minlength=len(self.regrouping.tree))


def _excursions(profile: Profile, keep: Sequence[re.Pattern[str]] = (), *, names_functions: bool = True) -> _Excursions:
    """The excursions of a profile.

    What a recorded module runs before its own code, and between it and what it calls, is a part of the module. What
    begins and ends a scope is a part of the function that does so.
    """
    tree = profile.tree
    names, of_frame = _libraries(tree.frames)
    is_module = _modules(profile)
    library = np.where(_kept(tree, is_module, of_frame >= 0, keep), -1, of_frame[tree.frame])
    is_library: BoolArray = library >= 0
    entered = is_library & ~is_library[tree.parent]
    first = _first_nodes(tree, is_library & ~entered)
    is_part: BoolArray = (entered & is_module[tree.parent])[first] | _annotating(tree, library, first)
    name = _excursion_names(library, first)
    if names_functions:
        names, name = _with_functions(tree, names, name, entered & (name == library))
    else:
        names = [f"[{each}]" for each in names]
    named = CallTree(
        tree.parent,
        np.where(entered, len(tree.frames) + name, tree.frame).astype(np.int32),
        FrameTable.concatenate([tree.frames, FrameTable.of_names(FrameKind.PYTHON, names)]),
    )
    regrouping = regroup(named, folded=is_library & ~entered | is_part)
    return _Excursions(names, is_library & ~is_part, entered, is_part, name, regrouping)


def _modules(profile: Profile) -> BoolArray:
    """Scopes of recorded modules: [n_nodes]."""
    frames, described = profile.tree.frames, profile.run.attributes
    rows = zip(np.equal(frames.kind, FrameKind.SCOPE).tolist(), frames.name, strict=True)
    is_module = [is_scope and "module" in described.get(name, {}) for is_scope, name in rows]
    return np.array(is_module, np.bool_)[profile.tree.frame]


def _annotating(tree: CallTree, library: Int64Array, first: Int64Array) -> BoolArray:
    """Nodes of excursions in which packages do nothing but begin and end scopes: [n_nodes].

    Args:
        tree: With the excursions.
        library: Of each node: [n_nodes].
        first: Where the excursion of each node begins: [n_nodes].
    """
    rows = zip(tree.frames.name, tree.frames.file, strict=True)
    begins = np.array([annotates(name, file) for name, file in rows], np.bool_)[tree.frame] & (library >= 0)
    within = begins.copy()
    for level in tree.levels[1:] if begins.any() else []:
        within[level] |= within[tree.parent[level]] & (library[level] >= 0)
    does_so, does_more = np.zeros(len(tree), np.bool_), np.zeros(len(tree), np.bool_)
    does_so[first[within]] = True
    does_more[first[(library >= len(_COMMON)) & ~within]] = True
    annotating: BoolArray = (library >= 0) & (does_so & ~does_more)[first]
    return annotating


def _kept(tree: CallTree, is_module: BoolArray, of_library: BoolArray, keep: Sequence[re.Pattern[str]]) -> BoolArray:
    """Frames of libraries that stay: [n_nodes]. The one that computes a recorded module says the same as its scope."""
    rows = zip(of_library.tolist(), tree.frames.name, tree.frames.file, strict=True)
    stays = np.array([is_library and is_kept(name, file, keep) for is_library, name, file in rows], np.bool_)
    kept, said = stays[tree.frame], is_module.copy()
    for level in tree.levels[1:] if kept.any() else []:
        above = said[tree.parent[level]]
        # Plumbing hands on that the scope above tells of the module; its `forward` and all else end that.
        said[level] |= above & of_library[tree.frame[level]] & ~kept[level]
        kept[level] &= ~above
    return kept


def _lengths(tree: CallTree, is_library: BoolArray) -> Int64Array:
    """How many frames of an excursion end at each node: [n_nodes]; 0 outside."""
    # Pointer doubling: after k rounds `above` is 2^k library frames up; behind the last node: there are fewer.
    outside = len(tree)
    length = np.append(is_library, False).astype(np.int64)
    above = np.append(np.where(is_library, tree.parent, outside), outside)
    while (above != outside).any():
        length += length[above]
        above = above[above]
    return length[:-1]


def _first_nodes(tree: CallTree, is_further: BoolArray) -> Int64Array:
    """Where the excursion begins that each node is in, itself for all others: [n_nodes].

    Args:
        tree: With the excursions.
        is_further: Nodes of excursions that do not begin one: [n_nodes].
    """
    first: Int64Array = np.where(is_further, tree.parent, np.arange(len(tree)))
    while (first != first[first]).any():
        first = first[first]
    return first


def _libraries(frames: FrameTable) -> tuple[list[str], Int64Array]:
    """Names of libraries, those of `_COMMON` first, and the one that each frame belongs to; -1: none."""
    found = [
        library_of(file) if kind == FrameKind.PYTHON else ""
        for kind, file in zip(frames.kind.tolist(), frames.file, strict=True)
    ]
    names = list(dict.fromkeys([*_COMMON, *filter(None, found)]))
    number = {name: index for index, name in enumerate(names)}
    return names, np.array([number.get(name, -1) for name in found], np.int64)


def _excursion_names(library: Int64Array, first: Int64Array) -> Int64Array:
    """The names of the excursions, as indices of the libraries, at the nodes where they begin: [n_nodes].

    Args:
        library: Of each node: [n_nodes].
        first: Where the excursion of each node begins: [n_nodes].
    """
    packages = np.flatnonzero(library >= len(_COMMON))
    named_by = np.full(len(library), len(library))
    np.minimum.at(named_by, first[packages], packages)
    name: Int64Array = np.append(library, 0)[named_by]  # without a package: that of Python
    return name


def _with_functions(
    tree: CallTree, libraries: list[str], name: Int64Array, is_call: BoolArray
) -> tuple[list[str], Int64Array]:
    """The names of excursions, with the function that was called where it is public.

    Args:
        tree: With the excursions.
        libraries: Their names.
        name: Of the excursions, as `_excursion_names` returns it: [n_nodes].
        is_call: Nodes at which an excursion begins in the library that it is named after: [n_nodes].
    """
    names, name = list(libraries), name.copy()
    number = {each: index for index, each in enumerate(names)}
    for node in np.flatnonzero(is_call).tolist():
        function = tree.frames.name[tree.frame[node]]
        if "<" in function or function.rpartition(".")[2].startswith("_"):
            continue
        called = f"{libraries[name[node]]}{_CALLED}{function}"
        name[node] = number.setdefault(called, len(number))
    return [*names, *list(number)[len(names) :]], name
