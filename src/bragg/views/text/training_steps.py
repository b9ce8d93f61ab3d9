"""How long training steps took, and what for, in a sentence."""

from __future__ import annotations

import numpy as np

from bragg.errors import UsageError
from bragg.grouping.regions import group_by_region, step_function
from bragg.model import Profile
from bragg.views.text.units import count_text, share_text, time_text

__all__ = ["steps_line"]


def steps_line(profile: Profile) -> str:
    """How many steps a program made, how long one took, and the share of each region; empty where none was recorded."""
    if not profile.run.has_regions:
        return ""
    try:
        regions = group_by_region(profile)
    except UsageError:  # What the file says of them are no times.
        return ""
    count = int(regions.own("region_calls")[0]) if "region_calls" in regions.metrics else 0
    if not count:
        return ""
    own, total_ns = regions.own("region_time"), regions.total("region_time")
    steps = f"{count_text(count, 'step')} of {time_text(total_ns / count)}"
    function = step_function(profile.meta)
    if function:
        return f"{steps}, calls of {function}"
    shares = [f"{regions.tree.label(node)} {share_text(own[node] / total_ns)}" for node in np.flatnonzero(own).tolist()]
    return f"{steps}: {', '.join(shares)}"
