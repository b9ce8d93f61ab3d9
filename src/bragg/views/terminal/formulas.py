"""Metrics that are computed when they are shown; what computes them is handed in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from bragg.errors import UsageError
from bragg.model import MetricKind, Profile
from bragg.model.table import FloatArray


class Computed(Protocol):
    """Values of a metric at every node."""

    @property
    def unit(self) -> str:
        """Unit of the values."""

    @property
    def kind(self) -> MetricKind:
        """How they behave along a call path."""

    @property
    def values(self) -> FloatArray:
        """float64 [n_nodes], with what ran below; NaN where there is none."""

    def why_absent(self, node: int) -> str:
        """Why a node has no value; empty when it has one."""


class Formulas(Protocol):
    """What computes metrics."""

    def knows(self, name: str) -> bool:
        """Whether a computed metric has this name; the profile may still lack its ingredients."""

    def names(self, profile: Profile) -> list[str]:
        """Those that can be computed of a profile."""

    def compute(self, profile: Profile, name: str) -> Computed:
        """Compute one.

        Raises:
            UsageError: The profile lacks what it is computed from.
        """


@dataclass(frozen=True)
class _NoFormulas:
    def knows(self, name: str) -> bool:
        return False

    def names(self, profile: Profile) -> list[str]:
        return []

    def compute(self, profile: Profile, name: str) -> Computed:
        raise UsageError(f"this profile has no metric {name!r}")


NO_FORMULAS: Formulas = _NoFormulas()
