"""How long training steps took, and what for, in a sentence."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from bragg.analyze.wall.region_shares import median_shares, region_shares
from bragg.analyze.wall.step_times import StepTimes, step_times
from bragg.analyze.wall.wall_time import Steady
from bragg.errors import UsageError
from bragg.grouping.regions import LOOP, are_recorded, group_by_region, step_function, step_source
from bragg.model import Profile
from bragg.views.text.units import count_text, share_text, time_text

# Steps of which some took so much longer than the median that their average says nothing of any of them.
_SKEWED = 1.5
_STEP = "step"


def steps_line(profile: Profile, steady: Steady | None = None) -> str:
    """How many steps a program made, how long one took, and the share of each region; empty where none was recorded.

    Args:
        profile: A whole run.
        steady: Its steady state, whose steps were printed before; None: it is not known.
    """
    if not profile.run.has_regions:
        return ""
    if steady is not None and steady.n_steps:
        return _of_steady(profile, steady)
    try:
        regions = group_by_region(profile)
    except UsageError:  # The file counts regions, but has no times of them.
        return ""
    count = int(regions.own("region_calls")[0]) if "region_calls" in regions.metrics else 0
    if not count:
        return ""
    own, total_ns = regions.own("region_time"), regions.total("region_time")
    shares = {regions.tree.label(node): float(own[node] / total_ns) for node in np.flatnonzero(own).tolist()}
    times, function = step_times(profile), step_function(profile.meta)
    known = times if times and (times.name in (_STEP, function) or times.name.startswith(LOOP)) else None
    step_ns, n_steps = known.usual() if known else (total_ns / count, count)
    steps = f"{count_text(n_steps, 'step')} of {time_text(step_ns)}{_after_slow(known) if known else ''}"
    usual = _uneven(known) if known else ""
    if function:
        return f"{steps}{step_source(known.name if known else function)}{usual}"
    if not are_recorded(regions):
        return f"{steps}{usual}"
    of_which = f"; of all {count}" if n_steps < count else ""
    median = median_shares(profile)
    if median is not None and median[1] and total_ns > _SKEWED * median[0] * count:
        of_which, shares = f"; the median one of {time_text(median[0])}", median[1]
    return _with_shares(f"{steps}{of_which}", shares)


def _uneven(times: StepTimes) -> str:
    """That the average says nothing of a usual step."""
    if (uneven := times.uneven()) is None:
        return ""
    median_ns, of_longest = uneven
    return f"; the median one took {time_text(median_ns)}, the longest tenth {share_text(of_longest)} of the time"


def _after_slow(times: StepTimes) -> str:
    """The first steps, which are longer, and are left out."""
    count, lasted_ns = times.slow_ns()
    if not count:
        return ""
    took = f", which took {time_text(lasted_ns)}" if lasted_ns else ""
    return f" after the first{f' {count}' if count > 1 else ''}{took}"


def _of_steady(profile: Profile, steady: Steady) -> str:
    shares = region_shares(profile, steady)
    if shares and len(shares.keys() - {"forward", "other"}):
        return _with_shares("a steady step", shares)
    median = median_shares(profile)
    if median is None or not median[1] or step_function(profile.meta):
        return ""
    return _with_shares(f"the median step takes the host {time_text(median[0])}", median[1])


def _with_shares(steps: str, shares: Mapping[str, float]) -> str:
    return f"{steps}: {', '.join(f'{name} {share_text(share)}' for name, share in shares.items())}"
