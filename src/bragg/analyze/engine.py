"""Asks every rule what it finds in a profile."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum, auto
from functools import cached_property

from bragg.errors import UsageError
from bragg.grouping.regions import group_by_region
from bragg.model import Finding, Profile
from bragg.registry import RULES

__all__ = ["Evidence", "Rule", "Subject", "findings"]


class Subject(Enum):
    """The view that a finding belongs to."""

    RUN = auto()
    STEPS = auto()


class Evidence:
    """Facts that rules look at; each is computed once, when the first rule asks for it.

    Args:
        profile: What was recorded.
        regions: The same by regions, as `group_by_region` makes it; None: computed when it is asked for.
    """

    def __init__(self, profile: Profile, regions: Profile | None = None) -> None:
        self.profile = profile
        if regions is not None:
            self.regions = regions

    @cached_property
    def regions(self) -> Profile | None:
        """The regions of training steps; None where none were recorded."""
        try:
            return group_by_region(self.profile)
        except UsageError:
            return None


@dataclass(frozen=True)
class Rule:
    """One thing to look for.

    Attributes:
        find: What it finds, what matters most first.
        subject: What the findings are about.
    """

    find: Callable[[Evidence], Iterator[Finding]]
    subject: Subject = Subject.RUN


def findings(evidence: Evidence, subject: Subject = Subject.RUN) -> list[Finding]:
    """What the rules of a subject find, in the order of their table."""
    rules: list[Rule] = list(RULES.values())
    return [finding for rule in rules if rule.subject is subject for finding in rule.find(evidence)]
