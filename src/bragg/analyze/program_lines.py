"""A file of the program, with the time that the tree has for each of its lines."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import PurePath

import numpy as np

from bragg.errors import UsageError
from bragg.grouping.regions import BACKWARD, BACKWARD_REGION
from bragg.model import FrameKind, Profile
from bragg.model.table import FloatArray, Int64Array
from bragg.model.transform import with_descendants

TIMES = ("host_time", "worker_time", "gpu_time")
"""What is told of a line: time of the host, of workers of data loaders, and of the GPU, with all that it calls."""
_N_NAMES = 5
_CALLS_OF_BACKWARD = ("Tensor.backward", "backward", "_engine_run_backward")


@dataclass(frozen=True)
class ProgramLine:
    """A line of a file.

    Attributes:
        number: From 1.
        text: As it is written.
        times_ns: By metric, with all that it calls; only those that are not 0.
        backward_ns: The part of them that is the backward pass of what it calls, where another line runs that.
    """

    number: int
    text: str
    times_ns: dict[str, float]
    backward_ns: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class ProgramFile:
    """A file that the profile keeps.

    Attributes:
        file: As frames name it.
        lines: All of them.
        totals_ns: Of the whole run, by metric; only those that were measured.
    """

    file: str
    lines: list[ProgramLine]
    totals_ns: dict[str, float]


def program_files(profile: Profile) -> list[str]:
    """Files of the program whose text the profile keeps, the one whose lines took most, with all they call, first."""
    frames = profile.tree.frames
    named = (
        file for kind, file in zip(frames.kind.tolist(), frames.file, strict=True) if kind == FrameKind.PYTHON and file
    )
    kept = dict.fromkeys(file for file in named if file in profile.sources)
    kept |= dict.fromkeys(file for file in profile.sources if file.endswith(".py"))
    times = [profile.inclusive(name) for name in TIMES if profile.measured(name)]

    def longest(file: str) -> list[float]:
        nodes = _nodes_of(profile, file)
        return [float(np.max(time[nodes], initial=0)) for time in times]

    return sorted(kept, key=longest, reverse=True)


def program_file(profile: Profile, wanted: str) -> ProgramFile | None:
    """The file that a name, or the end of a path, means; None: the profile keeps none of this name.

    Raises:
        UsageError: None, though it is a name of Python code.
    """
    files, parts = program_files(profile), PurePath(wanted).parts
    meant = [file for file in files if PurePath(file).parts[-len(parts) :] == parts] if parts else []
    if meant:
        return with_times(profile, meant[0])
    if not wanted.endswith(".py"):
        return None
    raise UsageError(f"this profile has no text of {wanted}", hint=_kept(files))


def _kept(files: list[str]) -> str:
    if files:
        return f"It has: {', '.join(files[:_N_NAMES])}"
    return "It has no text of the program: its files had changed or were gone, or bragg run had --no-kernel-code"


def with_times(profile: Profile, file: str) -> ProgramFile:
    """A file whose text the profile keeps."""
    measured = [name for name in TIMES if profile.measured(name)]
    nodes = _outermost(profile, _nodes_of(profile, file))
    times = _by_line(profile, nodes, {name: profile.inclusive(name) for name in measured})
    backward = _by_line(profile, nodes, dict(_backward_times(profile, measured)))
    lines = [
        ProgramLine(number, text, times.get(number, {}), backward.get(number, {}))
        for number, text in enumerate(profile.sources[file].splitlines(), 1)
    ]
    return ProgramFile(file, lines, {name: profile.total(name) for name in measured})


def _by_line(profile: Profile, nodes: Int64Array, times: dict[str, FloatArray]) -> dict[int, dict[str, float]]:
    """What nodes have of each metric, by the number of their line; only what is not 0."""
    numbers = profile.tree.frames.line[profile.tree.frame[nodes]].tolist()
    found: dict[int, dict[str, float]] = {}
    for name, time in times.items():
        for number, time_ns in zip(numbers, time[nodes].tolist(), strict=True):
            if time_ns > 0:
                of_line = found.setdefault(number, {})
                of_line[name] = of_line.get(name, 0.0) + time_ns
    return found


def _backward_times(profile: Profile, names: list[str]) -> Iterator[tuple[str, FloatArray]]:
    """The backward pass below each node, by metric; 0 above the calls that run it, and where none is known."""
    tree, frames = profile.tree, profile.tree.frames
    rows = list(zip(frames.kind.tolist(), frames.name, frames.file, strict=True))
    is_backward = np.array([kind == FrameKind.STATE and name.startswith(BACKWARD) for kind, name, _ in rows])
    is_call = np.array([_calls_backward(profile, *row) for row in rows])
    if not is_call.any():
        return
    is_below = with_descendants(tree, is_backward[tree.frame])
    has_no_call = tree.sum_up(is_call[tree.frame].astype(np.int64)) == 0
    for name in names:
        yield name, np.where(has_no_call, tree.sum_up(np.where(is_below, profile.own(name), 0)), 0)


def _calls_backward(profile: Profile, kind: FrameKind, name: str, file: str) -> bool:
    is_of_library = kind == FrameKind.PYTHON and file not in profile.sources
    return name.startswith(BACKWARD_REGION) or (is_of_library and name in _CALLS_OF_BACKWARD)


def _nodes_of(profile: Profile, file: str) -> Int64Array:
    """The nodes of a file's Python code, ascending."""
    tree = profile.tree
    is_in_file = np.array([name == file for name in tree.frames.file]) & (tree.frames.kind == FrameKind.PYTHON)
    return np.flatnonzero(is_in_file[tree.frame])


def _outermost(profile: Profile, nodes: Int64Array) -> Int64Array:
    """Those of the nodes that are not below one of the same line, as in a function that calls itself."""
    tree = profile.tree
    lines = np.full(len(tree), -1, np.int64)
    lines[nodes] = tree.frames.line[tree.frame[nodes]]
    is_inner, above = np.zeros(len(nodes), np.bool_), tree.parent[nodes]
    while (above > 0).any():
        is_inner |= lines[above] == lines[nodes]
        above = np.where(above > 0, tree.parent[above], 0)
    return nodes[~is_inner]
