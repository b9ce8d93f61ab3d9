"""What an analysis or a check found."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

__all__ = ["Finding", "Severity"]


class Severity(IntEnum):
    """How much a finding matters; a higher number matters more."""

    NOTE = 0
    WARNING = 1
    ERROR = 2


@dataclass(frozen=True)
class Finding:
    """One statement about a profile.

    Attributes:
        rule: Name of the rule that found it.
        severity: How much it matters.
        message: What is wrong, with the evidence; one line.
        hint: What to do about it; may be empty.
        node: The call path it is about; None when it is about the whole profile.
    """

    rule: str
    severity: Severity
    message: str
    hint: str = ""
    node: int | None = None
