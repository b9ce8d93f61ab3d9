"""`bragg view --group-by module`, `region` and `process`: what a program consists of, instead of its call paths."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bragg.model import Profile
    from bragg.views.terminal.view_options import ViewOptions


WHOLE = ("module", "region", "process")
"""Groupings that replace call paths."""
# What a narrow terminal has no room for.
_WIDE_METRICS = ("region_calls", "gpu_count")


def grouped(
    profile: Profile, options: ViewOptions, group_by: str, *, is_narrow: bool
) -> tuple[Profile, ViewOptions, list[str]]:
    """A profile by its modules, regions or processes, with the metrics to show of them, and what they say."""
    if group_by == "region":
        from bragg.grouping.regions import group_by_region
        from bragg.views.text.region_notes import region_notes

        regions = group_by_region(profile)
        metrics = tuple(name for name in regions.metrics if not (is_narrow and name in _WIDE_METRICS))
        return regions, replace(options, metrics=options.metrics or metrics), region_notes(profile, regions)
    if group_by == "process":
        from bragg.grouping.processes import group_by_process

        processes = group_by_process(profile)
        return processes, replace(options, metrics=options.metrics or tuple(processes.metrics)), []
    from bragg.grouping.modules import PHASES, group_by_module
    from bragg.views.terminal.columns import choose_names

    # The first metric that was asked for, or the main one, in each phase.
    metric, *others = choose_names(profile, options.metrics or (profile.main_metric,), (), options.formulas)
    return group_by_module(profile, metric), replace(options, metrics=(metric, *PHASES, *others)), []
