"""Events of Chrome's trace format, which tracers of many frameworks write: what may be in them, read without trust."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

# The sum of a base below 2^62, a beginning and a duration is an int64.
_LIMIT_NS = 1 << 61


def arguments_of(event: Mapping[str, Any]) -> dict[str, Any]:
    """What the event says of itself; empty: nothing, or no object."""
    arguments = event.get("args")
    return arguments if isinstance(arguments, dict) else {}


def time_ns(event: Mapping[str, Any], name: str) -> int:
    """A time of an event, `ts` or `dur`, which is given in microseconds; 0 where it is missing.

    Raises:
        ValueError: It is not a number, negative, or too large.
    """
    value = event.get(name, 0)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < _LIMIT_NS // 1000:
        raise ValueError(f"{name} of an event is not a time: {value!r}")
    return round(value * 1000)
