"""Regions of training programs, and other things that users choose by lists of names."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


STEP = "step"
ALL = (STEP, "data", "forward", "backward", "optimizer")
"""Names of what can be recorded: steps, and regions that are scopes."""

DECODING_STEP = "decoding step"
"""A turn of the loop in which a language model generates: one more token of each sequence."""

PROBES = ("accesses", "branches", "values")
"""Names of what a launch of a kernel can count; see `bragg.code.instrument.probes`."""


def chosen(names: str, known: Sequence[str] = ALL) -> tuple[str, ...]:
    """What a list means: `all`, or names with commas between.

    Raises:
        ValueError: A name is unknown; it is the argument of the error.
    """
    if names == "all":
        return tuple(known)
    wanted = tuple(name for name in names.split(",") if name)
    for name in wanted:
        if name not in known:
            raise ValueError(name)
    return wanted
