"""The numbers that rules compare with, each with its source."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Threshold"]


@dataclass(frozen=True)
class Threshold:
    """One number.

    Attributes:
        value: The number.
        unit: `ns`, `B`, `share` (0 to 1), or `1` for counts.
        meaning: What is compared with it.
        source: Where the number comes from.
    """

    value: float
    unit: str
    meaning: str
    source: str
