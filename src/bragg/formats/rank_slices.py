"""The slices of a capture that the summary of a rank is made of, so that a long trace need not fit in memory."""

from __future__ import annotations

import numpy as np

from bragg.formats.capture import Recording
from bragg.grouping.regions import OPTIMIZER, step_function
from bragg.model import SliceTable, TrackKind

__all__ = ["needed_of"]

_MAX_SLICES = 20_000_000  # 0.6 GB
_DATA_LOADER = "enumerate(DataLoader)#"


def needed_of(recording: Recording) -> SliceTable:
    """The work of GPUs, launches of it, regions and what ends steps; none of a recording that is no rank's.

    The summary of a longer trace knows sums alone.
    """
    profile = recording.profile
    if profile.run.rank is None:
        return SliceTable.empty()
    names, function = profile.tree.frames.name, step_function(profile.meta)
    starts = (*OPTIMIZER, _DATA_LOADER)
    is_mark = np.array([name.startswith(starts) or (bool(function) and name == function) for name in names], np.bool_)
    is_near = np.isin(profile.tracks.kind, (TrackKind.GPU_STREAM, TrackKind.RANGES))
    kept: list[SliceTable] = []
    n_kept = 0
    for block in recording.slice_blocks():
        is_needed = is_near[block.track] | is_mark[profile.tree.frame[block.node]] | (block.correlation != 0)
        kept.append(block.take(is_needed))
        n_kept += len(kept[-1])
        if n_kept > _MAX_SLICES:
            return SliceTable.empty()
    return SliceTable.concatenate(kept).sorted()
