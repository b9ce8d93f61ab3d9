"""Reading the capture of a run, `.part`, also of one that was killed or is still running."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from bragg.errors import BadFile, NothingRecorded
from bragg.formats.captured.chunks import FILE_MAGIC, Scan, scan
from bragg.formats.captured.clock_slices import add_clock_slices
from bragg.formats.captured.clocks import with_clocks
from bragg.formats.captured.counted import with_counted
from bragg.formats.captured.counters import Clock, clocks_of, counters_of
from bragg.formats.captured.jax_memory import with_jax_memory
from bragg.formats.captured.profile import (
    attributes_of,
    durations_of,
    idle_of,
    inputs_of,
    kernels_of,
    metrics_of,
    resolve,
    tracks_of,
    tree_of,
)
from bragg.formats.captured.regions import add_region_slices
from bragg.formats.captured.samples import with_samples
from bragg.formats.captured.tables import CaptureTables, Columns, collect
from bragg.formats.captured.values import values_of
from bragg.formats.captured.writer import is_being_written
from bragg.formats.format import Format, damaged
from bragg.formats.limits import Limits, TooLargeError, check_depth
from bragg.grouping.compilations import with_compiling_as_work
from bragg.grouping.compiled_regions import name_compiled_regions
from bragg.grouping.hlo_tree import place_operations
from bragg.model import CallTree, FrameKind, Profile, SliceTable, TrackKind, TrackTable
from bragg.model.meta.run import Run
from bragg.model.regroup import regroup
from bragg.model.table import BoolArray, Int32Array, Int64Array
from bragg.model.transform import has_data, with_ancestors, with_descendants

TYPE_CHECKING = False  # Viewing needs no reader of code, which takes 30 ms to import.
if TYPE_CHECKING:
    from bragg.code.reading import CodeWish


# 2^18 slices of 32 bytes: a block and its working copies stay below 64 MB.
BLOCK_ROWS = 1 << 18


@dataclass(frozen=True, eq=False)
class OpenedCapture:
    """An opened capture.

    Attributes:
        profile: All of it except the slices.
    """

    profile: Profile
    _parts: list[Columns]
    _target: Int32Array
    _clocks: dict[int, Clock]

    def slice_blocks(self, rows: int = BLOCK_ROWS) -> Iterator[SliceTable]:
        """The slices in file order, about `rows` at a time."""
        batch: list[SliceTable] = []
        missing = rows
        for part in self._parts:
            for begin in range(0, len(part["node"]), rows):
                batch.append(self._slices(part, slice(begin, begin + rows)))
                missing -= len(batch[-1])
                if missing <= 0:
                    yield SliceTable.concatenate(batch)
                    batch, missing = [], rows
        if batch:
            yield SliceTable.concatenate(batch)

    def _slices(self, part: Columns, rows: slice) -> SliceTable:
        node = self._target[resolve(part["node"][rows], len(self._target))]
        track = resolve(part["track"][rows], len(self.profile.tracks))
        found = SliceTable(part["start_ns"][rows], part["duration_ns"][rows], node, track, part["correlation"][rows])
        return self._in_profile_time(found if (node >= 0).all() else found.take(node >= 0))

    def _in_profile_time(self, slices: SliceTable) -> SliceTable:
        """Slices of units of a device have times of its clock; of a clock that was never read they are left out."""
        clock_of_track = _clock_of_track(self.profile.tracks)
        if not clock_of_track.any():
            return slices
        clock_of_slice = clock_of_track[slices.track]
        start, end = slices.start_ns.copy(), slices.start_ns + slices.duration_ns
        for number, clock in self._clocks.items():
            chosen = clock_of_slice == number
            start[chosen], end[chosen] = clock.to_ns(start[chosen]), clock.to_ns(end[chosen])
        known = np.isin(clock_of_slice, [0, *self._clocks]) & (start >= 0) & (end >= start)
        return slices.replace(start_ns=start, duration_ns=end - start).take(known)


def read(path: Path, *, trace: bool = True, code: CodeWish | None = None) -> Profile:
    """The profile of a capture; `meta["capture"]` says whether it is complete, what was lost, and if its run continues.

    Args:
        path: The capture.
        trace: With its slices.
        code: How much of the code of kernels it gets; None: instructions are directly below their kernels.

    Raises:
        BadFile: The file cannot be read, is not a capture, or is of a later version.
        NothingRecorded: The capture holds no measurement.
    """
    is_running = is_being_written(path)  # First: a run that ends meanwhile may have written more than was read.
    recording = open_capture(path, code)
    profile = _running(recording.profile) if is_running else recording.profile
    if not trace:
        return profile
    return replace(profile, slices=SliceTable.concatenate(list(recording.slice_blocks())).sorted())


def _running(profile: Profile) -> Profile:
    """The profile with the fact that its run continues, unless its capture is complete or can no longer be written."""
    told = profile.meta["capture"]
    if told["complete"] or "write_error" in told:
        return profile
    return replace(profile, meta={**profile.meta, "capture": {**told, "running": True}})


def open_capture(path: Path, code: CodeWish | None = None) -> OpenedCapture:
    """Everything of a capture but its slices, which are handed out block by block; arguments as of `read`.

    Raises:
        BadFile: The file cannot be read, is not a capture, or is of a later version.
        NothingRecorded: The capture holds no measurement.
    """
    scanned = scan(path)
    tables, limits = collect(scanned), Limits.of(path)
    add_region_slices(tables)
    add_clock_slices(tables)
    try:
        recorded = _without_samples(tables, scanned, limits)
        profile = with_jax_memory(with_clocks(with_samples(recorded, tables, code, limits), limits), limits)
        useful = _useful(profile, tables, len(recorded.tree))
        if not useful.any() and not len(profile.counters):
            raise _empty(path, scanned.write_error)
        recording = _opened(profile, tables, useful, len(recorded.tree))
        return replace(recording, profile=_with_counted(recording, limits))
    except TooLargeError as error:
        raise damaged(path, error, "Record fewer metrics, or shorter call paths") from error


def _without_samples(tables: CaptureTables, scanned: Scan, limits: Limits) -> Profile:
    """What the recorder wrote, with its nodes: neither samples of instructions nor slices."""
    tree, tracks = tree_of(tables), tracks_of(tables)
    check_depth(tree)
    values = values_of(tables, tree, limits)
    tree = replace(tree, frames=name_compiled_regions(tree.frames, Run(tables.meta).compiled_regions))
    attributes = attributes_of(tables, tree.frames)
    for name, noted in Run(tables.meta).compiled_for_target.items():
        attributes[name] = {**noted, **attributes.get(name, {})}
    damage = _damage(tables, scanned, _without_clock(tables, tracks, clocks_of(tables)))
    return Profile(
        meta={**tables.meta, "capture": damage, **({"attributes": attributes} if attributes else {})},
        tree=tree,
        metrics={**values, **metrics_of(tables, tree)},
        tracks=tracks,
        counters=counters_of(tables, tracks),
        kernels=kernels_of(tables, tree),
        durations=durations_of(tables, tree),
        inputs=inputs_of(tables, tree),
        idle=idle_of(tables, tree),
    )


def _useful(profile: Profile, tables: CaptureTables, n_recorded: int) -> BoolArray:
    """Nodes of which something was recorded: [n_nodes]; slices have one of the first `n_recorded`."""
    useful = has_data(profile)
    useful[profile.idle.node] = True
    for part in tables.slices:
        useful[resolve(part["node"], n_recorded)] = True
    return useful


def _empty(path: Path, write_error: int) -> BadFile | NothingRecorded:
    if write_error:
        return BadFile(f"{path} could not be written ({os.strerror(write_error)})", hint="Is the disk full?")
    return NothingRecorded(f"{path} holds no measurement", hint="Did the program run anything to measure?")


def _opened(profile: Profile, tables: CaptureTables, useful: BoolArray, n_recorded: int) -> OpenedCapture:
    """The useful nodes of a profile and what is above them, XLA's operations where they belong."""
    placed, target, folded = _with_operations(profile)
    tree = placed.tree
    folded |= _unwanted(tree, placed.run)
    has_own = np.isin(np.arange(len(tree)), target[useful])
    is_kept = with_ancestors(tree, has_own & ~_of_sessions(tree, placed.run.recorder_directory))
    pruned = regroup(tree, dropped=~is_kept, folded=folded)
    of_slices = pruned.target[target[:n_recorded]]
    return OpenedCapture(pruned.apply(placed), tables.slices, of_slices, clocks_of(tables))


def _with_counted(recording: OpenedCapture, limits: Limits) -> Profile:
    """Samples of counters belong to all slices around them: these are in memory at once."""
    profile = recording.profile
    if not len(profile.counters):
        return profile
    slices = SliceTable.concatenate(list(recording.slice_blocks()))
    return replace(with_counted(replace(profile, slices=slices), limits), slices=profile.slices)


def _with_operations(profile: Profile) -> tuple[Profile, Int32Array, BoolArray]:
    """The profile with XLA's operations where they belong, where its nodes went, and which nodes say nothing."""
    placed = place_operations(profile.tree, profile.run.attributes)
    if placed is None:
        return profile, np.arange(len(profile.tree), dtype=np.int32), np.zeros(len(profile.tree), np.bool_)
    return with_compiling_as_work(placed.apply(profile)), placed.target, placed.folded


def _unwanted(tree: CallTree, run: Run) -> BoolArray:
    """Whether a node is the recorder's own, or a native frame that another session of the process asked for."""
    unwanted: BoolArray = _of_recorder(tree, run.recorder_directory)
    if not run.has_native_frames:
        unwanted |= tree.kind == FrameKind.NATIVE
    return unwanted


def _of_recorder(tree: CallTree, directory: str) -> BoolArray:
    """Whether a node is Python code of the recorder, which stands between the program and what it called."""
    if not directory:
        return np.zeros(len(tree), np.bool_)
    frames = tree.frames
    is_within = np.array([file.startswith(directory + os.sep) for file in frames.file], np.bool_)
    is_hidden: BoolArray = is_within & (frames.kind == FrameKind.PYTHON)
    return is_hidden[tree.frame]


def _of_sessions(tree: CallTree, directory: str) -> BoolArray:
    """Whether a node is in or below code that begins or ends a recording, which is no time of the program."""
    frames, files = tree.frames, [f"{directory}/record/inside/{name}.py" for name in ("session", "sessions")]
    is_session = np.array([file in files for file in frames.file], np.bool_)
    return with_descendants(tree, (is_session & (frames.kind == FrameKind.PYTHON))[tree.frame])


def _clock_of_track(tracks: TrackTable) -> Int64Array:
    """Number of the clock that the times of a track are of; 0: the profile's."""
    return np.where(tracks.kind == TrackKind.DEVICE_UNIT, tracks.context, 0)


def _without_clock(tables: CaptureTables, tracks: TrackTable, clocks: dict[int, Clock]) -> int:
    """How many slices are on tracks of clocks that were never read."""
    unknown = ~np.isin(_clock_of_track(tracks), [0, *clocks])
    if not unknown.any():
        return 0
    return sum(int(unknown[resolve(part["track"], len(tracks))].sum()) for part in tables.slices)


def _damage(tables: CaptureTables, scanned: Scan, slices_without_clock: int) -> dict[str, Any]:
    return {
        "complete": tables.is_complete,
        "damaged_chunks": scanned.damaged_chunks,
        "bytes_lost": scanned.bytes_lost,
        **({"slices_without_clock": slices_without_clock} if slices_without_clock else {}),
        **({"write_error": os.strerror(scanned.write_error)} if scanned.write_error else {}),
    }


FORMAT = Format(".part", "capture of a run, as the recorder writes it", magic=FILE_MAGIC, read=read)
