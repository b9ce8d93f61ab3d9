"""The slices of a capture that the summary of a rank is made of, so that a long trace need not fit in memory."""

from __future__ import annotations

import numpy as np

from bragg.formats.capture import OpenedCapture
from bragg.grouping.regions import OPTIMIZER, step_function
from bragg.model import FrameKind, SliceTable, TrackKind

_MAX_SLICES = 4_000_000  # 128 MB, and its copies
_DATA_LOADER = "enumerate(DataLoader)#"


def needed_of(recording: OpenedCapture) -> SliceTable | None:
    """The work of GPUs, launches of it, regions and what ends steps; without GPUs operators and samples.

    Returns:
        None: the recording is no rank's, or there are so many that the file gets no summary; who compares ranks then
        reads it whole.
    """
    profile = recording.profile
    if profile.run.rank is None:
        return None
    names, function = profile.tree.frames.name, step_function(profile.meta)
    starts = (*OPTIMIZER, _DATA_LOADER)
    is_mark = np.array([name.startswith(starts) or (bool(function) and name == function) for name in names], np.bool_)
    is_on_cpus = not (profile.tracks.kind == TrackKind.GPU_STREAM).any()
    is_mark |= is_on_cpus & (profile.tree.frames.kind == FrameKind.OPERATOR)
    near = (TrackKind.SAMPLES, TrackKind.RANGES) if is_on_cpus else (TrackKind.GPU_STREAM, TrackKind.RANGES)
    is_near = np.isin(profile.tracks.kind, near)
    kept: list[SliceTable] = []
    n_kept = 0
    for block in recording.slice_blocks():
        is_needed = is_near[block.track] | is_mark[profile.tree.frame[block.node]] | (block.correlation != 0)
        kept.append(block.take(is_needed))
        n_kept += len(kept[-1])
        if n_kept > _MAX_SLICES:
            return None
    return SliceTable.concatenate(kept).sorted()
