"""The parts of a run's wall time in one line: `start 11.9 s | warm-up 1.1 s | steady 2.8 s (60 steps of 43 ms)`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bragg.analyze.wall.wall_time import Steady, WallParts
from bragg.grouping.regions import step_source
from bragg.model.finding import percent_text
from bragg.model.meta.overhead import Overhead
from bragg.views.text.style import Style, printable
from bragg.views.text.units import count_text, time_text

_N_NAMED = 2
_N_LINES = 3
_SEPARATOR = " | "
_MUCH = 0.05  # is said of the overhead of the steady state, beside that of the run


def wall_line(parts: WallParts | None) -> str:
    """The parts, which add up; empty where they are not known."""
    if parts is None:
        return ""
    about = "" if parts.steady is None else f" ({_about(parts.steady)})"
    texts = [f"{name} {time_text(lasts_ns)}{about * (name == 'steady')}" for name, lasts_ns in parts.durations()]
    return _SEPARATOR.join(texts)


def wall_lines(parts: WallParts | None, style: Style) -> list[str]:
    """The same in as many lines as a narrow terminal needs."""
    line = wall_line(parts)
    return style.wrap(line, _N_LINES, "  ", _SEPARATOR) if line else []


def busy_text(busy: Mapping[int, float]) -> str:
    """How busy the devices were: `GPU busy 47 %`, of many the range."""
    if len(busy) == 1:
        return f"GPU busy {percent_text(*busy.values())}"
    if len(busy) <= _N_NAMED:
        return ", ".join(f"GPU {device} busy {percent_text(share)}" for device, share in busy.items())
    return f"{len(busy)} GPUs busy {percent_text(min(busy.values()))} to {percent_text(max(busy.values()))}"


def wall_json(parts: WallParts | None) -> dict[str, Any] | None:
    """The same as JSON values; None where they are not known."""
    if parts is None:
        return None
    steady = parts.steady
    return {
        "wall_ns": parts.wall_ns,
        "parts": [{"name": name, "duration_ns": lasts_ns} for name, lasts_ns in parts.durations()],
        "steady": steady
        and {
            "begins_ns": steady.begins_ns,
            "ends_ns": steady.ends_ns,
            "steps": steady.n_steps,
            "step_of": steady.step_of,
            "step_ns": steady.step_ns,
            "launches": steady.n_launches,
            "gpu_busy": {str(device): share for device, share in steady.busy.items()},
            "overhead": steady.overhead.to_json() if steady.overhead else None,
        },
    }


def _about(steady: Steady) -> str:
    if not steady.n_steps:
        steps = f"{steady.n_launches:,} launches"
    else:
        what = printable(step_source(steady.step_of))
        steps = f"{count_text(steady.n_steps, steady.step)} of {time_text(steady.step_ns)}{what}"
    return ", ".join(filter(None, [steps, busy_text(steady.busy) if steady.busy else "", _cost_text(steady.overhead)]))


def _cost_text(overhead: Overhead | None) -> str:
    if overhead is None or overhead.slowdown < _MUCH:
        return ""
    return f"recording {'at least ' * overhead.is_at_least}+{percent_text(overhead.slowdown)}"
