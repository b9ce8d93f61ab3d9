"""Regions of training programs, by the names that users choose them by."""

from __future__ import annotations

__all__ = ["ALL", "STEP", "chosen"]

STEP = "step"
ALL = (STEP, "data", "forward", "backward", "optimizer")
"""Names of what can be recorded: steps, and regions that are scopes."""


def chosen(names: str) -> tuple[str, ...]:
    """The regions that a list means: `all`, or names with commas between.

    Raises:
        ValueError: A name is unknown; it is the argument of the error.
    """
    if names == "all":
        return ALL
    wanted = tuple(name for name in names.split(",") if name)
    for name in wanted:
        if name not in ALL:
            raise ValueError(name)
    return wanted
