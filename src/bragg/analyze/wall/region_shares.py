"""What the steps of a steady state consist of: the shares of data, forward, backward and optimizer."""

from __future__ import annotations

import numpy as np

from bragg.analyze.wall.steady import during, own_times
from bragg.analyze.wall.wall_time import Steady
from bragg.errors import UsageError
from bragg.grouping.regions import REGIONS, group_by_region
from bragg.model import FrameKind, Profile, TrackKind

_OTHER = "other"
_ONE_CALL = 1.2  # a step: some more come after the last one, or are of a validation


def region_shares(profile: Profile, steady: Steady) -> dict[str, float]:
    """The shares of the steady state that regions took on the thread that trains; empty without their timeline."""
    slices, tree = profile.slices, profile.tree
    names = np.array([REGIONS.index(name) if name in REGIONS else -1 for name in tree.frames.name], np.int64)
    region = np.where(tree.kind == FrameKind.MARKER, names[tree.frame], -1)
    in_track = (profile.tracks.kind == TrackKind.RANGES)[slices.track] if len(slices) else np.zeros(0, np.bool_)
    chosen = slices.take(in_track & (region[slices.node] >= 0))
    if not len(chosen):
        return {}
    chosen = during(chosen, steady.begins_ns, steady.ends_ns)
    own_ns = np.bincount(region[chosen.node], weights=own_times(chosen), minlength=len(REGIONS))
    return _with_other({name: own_ns[row] / steady.duration_ns for row, name in enumerate(REGIONS)})


def median_shares(profile: Profile) -> tuple[float, dict[str, float]] | None:
    """The median step, ns, and what regions take of it, by the median of their calls; None: there is none.

    One step that compiled for seconds decides the average of forty, but not their median. Where a step calls a region
    several times, the median call tells nothing of their sum: there are no shares.
    """
    try:
        regions = group_by_region(profile)
    except UsageError:
        return None
    if not {"region_calls", "region_time_p50"} <= regions.metrics.keys():
        return None
    calls, median_ns = regions.own("region_calls"), regions.own("region_time_p50")
    if not calls[0] or not median_ns[0] > 0:
        return None
    if (calls > _ONE_CALL * calls[0]).any():
        return float(median_ns[0]), {}
    per_step = np.nan_to_num(median_ns) * calls / (median_ns[0] * calls[0])
    return float(median_ns[0]), _with_other({name: float(per_step[1 + row]) for row, name in enumerate(REGIONS)})


def _with_other(shares: dict[str, float]) -> dict[str, float]:
    """Shares that are not 0, and the rest; of those that overlap, such as of threads side by side, no rest is left."""
    shown = {name: float(share) for name, share in shares.items() if share > 0}
    rest = 1 - sum(shown.values())
    return {**shown, **({_OTHER: rest} if shown and rest > 0 else {})}
