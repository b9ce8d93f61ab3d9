"""`bragg view --idle`: what the host did while GPUs had nothing to do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from bragg.errors import NothingRecorded, UsageError
from bragg.views.terminal.grouping import WHOLE

if TYPE_CHECKING:
    from bragg.analyze.wall.wall_time import Steady
    from bragg.model import Profile
    from bragg.views.terminal.view_options import ViewOptions


def idle_options(options: ViewOptions, group_by: str) -> ViewOptions:
    """The default metrics of a table of idle time.

    Raises:
        UsageError: Call paths were to be put together.
    """
    from bragg.analyze.idle_paths import IDLE_METRICS

    if group_by in WHOLE:
        raise UsageError(f"idle time belongs to call paths, not to {group_by}s")
    return replace(options, metrics=options.metrics or IDLE_METRICS)


def with_idle_time(profile: Profile, choices: Mapping[str, Any]) -> Profile:
    """A profile with its timeline, and with the idle time if that was asked for.

    Raises:
        NothingRecorded: No GPU paused.
    """
    if not choices["idle"]:
        return profile
    from bragg.analyze.idle_paths import LEAST_PAUSE_NS, with_idle_paths

    least_us = choices["least_pause_us"]
    least_ns = LEAST_PAUSE_NS if least_us is None else round(1000 * least_us)
    found = with_idle_paths(profile, least_ns, _shown(profile, choices["part"]))
    if not found.total("gpu_idle_time"):
        raise NothingRecorded(
            "no GPU paused between its first and its last work", hint="What it did: bragg view --flat"
        )
    return found


def idle_lines(profile: Profile, part: str | None = None) -> list[str]:
    """How long the GPUs idled in the part that is shown; nothing unless that is what is shown."""
    if "gpu_idle_time" not in profile.metrics:
        return []
    from bragg.analyze.idle import idle_times
    from bragg.views.text.answer_text import idle_sentences

    return idle_sentences(profile, idle_times(profile, _shown(profile, part)))


def idle_json(profile: Profile, part: str | None = None) -> dict[str, Any]:
    """The same as JSON values: the pauses of each device."""
    if "gpu_idle_time" not in profile.metrics:
        return {}
    from bragg.analyze.idle import idle_times

    return {"idle": [asdict(idle) for idle in idle_times(profile, _shown(profile, part))]}


def _shown(profile: Profile, part: str | None) -> Steady | None:
    """The steady state, unless all of the run is shown or none is known."""
    if part == "all":
        return None
    from bragg.analyze.wall.parts import wall_parts

    parts = wall_parts(profile)
    return parts.steady if parts else None
