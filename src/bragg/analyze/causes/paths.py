"""Nodes of a call tree by name, and the line of the program that they come from."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import lru_cache

import numpy as np

from bragg.model import FrameKind, Place, Profile
from bragg.model.ids import NodeId
from bragg.model.kernels.names import operator_name
from bragg.model.library_files import is_library
from bragg.model.table import BoolArray, FloatArray, Int64Array
from bragg.model.transform import with_descendants
from bragg.model.tree import FrameTable

_N_PROFILES = 4  # whose frames are remembered: each rule asks for them

CALLERS = (FrameKind.PYTHON,)
"""Frames whose lines the host runs when it launches work."""
OPERATIONS = (FrameKind.PYTHON, FrameKind.OPERATOR)
"""Those, and operations of JAX's jitted functions, whose lines say what the GPU computes."""

IMPORTS = re.compile(r"^<frozen importlib")
"""Files of the code that imports modules."""
MODULE_CALLS = re.compile(r"[/\\]torch[/\\]nn[/\\]modules[/\\]module\.py$")
"""The file of the code of PyTorch that calls modules."""
AUTOGRAD = re.compile(r"[/\\]torch[/\\]autograd[/\\]__init__\.py$")
"""The file of PyTorch that starts a backward pass."""
BACKWARD = re.compile(r"\[backward.*|.*Backward\d*")
"""What a backward pass runs."""
TRITON_TUNER = re.compile(r"triton[/\\]runtime[/\\]autotuner\.py$")
"""The file of Triton's autotuner."""

# What empties gradients: of an optimizer, which PyTorch announces, and of a module.
ZEROES = re.compile(r"Optimizer\.zero_grad#|Module\.zero_grad$")


def named(profile: Profile, is_meant: Callable[[str], object]) -> BoolArray:
    """Nodes whose name, without shapes of tensors, fits: [n_nodes]."""
    names, row = _distinct_names(profile.tree.frames)
    return np.array([bool(is_meant(name)) for name in names], np.bool_)[row][profile.tree.frame]


@lru_cache(maxsize=_N_PROFILES)
def _distinct_names(frames: FrameTable) -> tuple[list[str], Int64Array]:
    """The names of operators and others, each once, and that of each frame as a row of them: [n_frames]."""
    return _distinct(map(operator_name, frames.name))


@lru_cache(maxsize=_N_PROFILES)
def _distinct_files(frames: FrameTable) -> tuple[list[str], Int64Array]:
    return _distinct(frames.file)


def _distinct(texts: Iterable[str]) -> tuple[list[str], Int64Array]:
    rows: dict[str, int] = {}
    row = np.array([rows.setdefault(text, len(rows)) for text in texts], np.int64)
    return list(rows), row


def children(profile: Profile, parent: str, child: str) -> BoolArray:
    """Nodes of one name directly below those of another: [n_nodes]."""
    above = np.maximum(profile.tree.parent, 0)
    found: BoolArray = named(profile, child.__eq__) & named(profile, parent.__eq__)[above]
    return found


def in_files(profile: Profile, pattern: re.Pattern[str]) -> BoolArray:
    """Python frames whose file is found by a pattern: [n_nodes]."""
    tree = profile.tree
    files, row = _distinct_files(tree.frames)
    fits = np.array([pattern.search(file) is not None for file in files], np.bool_)
    found: BoolArray = fits[row][tree.frame] & (tree.kind == FrameKind.PYTHON)
    return found


def below(profile: Profile, nodes: BoolArray) -> BoolArray:
    """These nodes and all that ran below them: [n_nodes]."""
    found: BoolArray = with_descendants(profile.tree, nodes)
    return found


def beside(profile: Profile, nodes: BoolArray, others: BoolArray) -> BoolArray:
    """Those of some nodes that have one of others directly below the same line or operator: all [n_nodes]."""
    parent = profile.tree.parent
    has_other = np.zeros(len(nodes), np.bool_)
    has_other[parent[others & (parent > 0)]] = True
    found: BoolArray = nodes & (parent > 0) & has_other[np.maximum(parent, 0)]
    return found


def place_of(profile: Profile, node: NodeId, kinds: tuple[FrameKind, ...] = CALLERS) -> Place:
    """The innermost line of the program above a node; of a library where no other is known."""
    line = line_above(profile, node, kinds)
    if line is None:
        return Place(node=node)
    frame = int(profile.tree.frame[line])
    return Place(profile.tree.frames.file[frame], int(profile.tree.frames.line[frame]), node=node)


def operation_line(profile: Profile, node: int) -> tuple[str, int]:
    """File and number of the innermost line above a node, of frames of `OPERATIONS`."""
    place = place_of(profile, NodeId(node), OPERATIONS)
    return place.file, place.line


def line_above(profile: Profile, node: int, kinds: tuple[FrameKind, ...] = CALLERS) -> int | None:
    """The node of the innermost line of the program above a node; of a library where no other is known.

    Args:
        profile: Of the node.
        node: Where to start.
        kinds: Frames whose lines count: of `CALLERS` or of `OPERATIONS`.
    """
    lines = _lines_above(profile, node, kinds)
    return next((line for line, is_library in lines if not is_library), lines[0][0] if lines else None)


def lines_above(profile: Profile, node: int) -> list[NodeId]:
    """The nodes of the lines of the program above a node, the outermost first."""
    return [line for line, is_library in reversed(_lines_above(profile, node, CALLERS)) if not is_library]


def _lines_above(profile: Profile, node: int, kinds: tuple[FrameKind, ...]) -> list[tuple[NodeId, bool]]:
    """The nodes of lines above a node, the innermost first, and whether they are of a library."""
    tree, lines = profile.tree, _lines_of(profile.tree.frames, kinds)
    path = ((step, lines[tree.frame[step]]) for step in reversed(tree.path(NodeId(node))))
    return [(step, is_library) for step, is_library in path if is_library is not None]


@lru_cache(maxsize=_N_PROFILES)
def _lines_of(frames: FrameTable, kinds: tuple[FrameKind, ...]) -> list[bool | None]:
    """Whether each frame is a line of a library; None: it is no line, or none of these kinds."""
    numbers = {int(kind) for kind in kinds}
    in_library = {file: is_library(file) for file in set(frames.file)}
    rows = zip(frames.kind.tolist(), frames.file, strict=True)
    return [in_library[file] if file and kind in numbers else None for kind, file in rows]


def hottest_line(profile: Profile, time_ns: FloatArray) -> str:
    """`file:line` of the program with most of a time; empty: what libraries do when it ends, below no line of it.

    Args:
        profile: A whole run.
        time_ns: float64 [n_nodes].
    """
    places = hot_places(profile, time_ns > 0, time_ns)
    return next((f"{each.file}:{each.line}" for each in places if each.file and not is_library(each.file)), "")


def hottest_place(
    profile: Profile, nodes: BoolArray, weight: FloatArray | Int64Array, kinds: tuple[FrameKind, ...] = CALLERS
) -> Place:
    """The line under which most of a weight of these nodes lies; both are [nodes]; its node is the heaviest of them."""
    return next(iter(hot_places(profile, nodes, weight, kinds)), Place())


def hot_places(
    profile: Profile, nodes: BoolArray, weight: FloatArray | Int64Array, kinds: tuple[FrameKind, ...] = CALLERS
) -> list[Place]:
    """The lines under which a weight of these nodes lies, both [n_nodes]; that with most of it first.

    The node of each is the heaviest. Lines with less than a tenth of the weight are left out, if there are others.
    """
    chosen = np.flatnonzero(nodes & (weight > 0))
    weights: dict[tuple[str, int], float] = {}
    places: dict[tuple[str, int], Place] = {}
    for node in chosen[np.argsort(-weight[chosen], kind="stable")][:_MAX_PLACES].tolist():
        place = place_of(profile, node, kinds)
        key = (place.file, place.line)
        weights[key] = weights.get(key, 0.0) + float(weight[node])
        places.setdefault(key, place)
    ranked = sorted(weights, key=lambda key: -weights[key])
    least = _LEAST_PLACE * sum(weights.values())
    return [places[key] for at, key in enumerate(ranked) if not at or weights[key] >= least]


# The heaviest nodes hold nearly all of the weight.
_MAX_PLACES = 200
_LEAST_PLACE = 0.1
