"""The columns of a job: mean of the ranks, the worst and the best one, and how far apart they are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from bragg.analyze.across_ranks import MEAN, RankSpread, spread_of
from bragg.model import MetricKind, Profile
from bragg.model.table import FloatArray
from bragg.views.terminal.formulas import Computed, Formulas

_VALUES: dict[str, Callable[[RankSpread], FloatArray]] = {
    "worst": lambda spread: spread.largest,
    "worst_rank": lambda spread: spread.worst.astype(np.float64),
    "best": lambda spread: spread.smallest,
    "best_rank": lambda spread: spread.best.astype(np.float64),
    "imbalance": lambda spread: spread.imbalance * 100,
}
_UNITS = {"worst_rank": "1", "best_rank": "1", "imbalance": "%"}


def rank_columns(metric: str) -> list[str]:
    """Names of the columns that say how a metric differs between ranks, after that of the mean."""
    return [f"{metric}_{value}" for value in _VALUES]


@dataclass(frozen=True, eq=False)
class _Values:
    unit: str
    values: FloatArray
    kind: MetricKind = MetricKind.PROPERTY

    def why_absent(self, node: int) -> str:
        return ""


@dataclass(frozen=True, eq=False)
class RankFormulas:
    """Computes these columns, and whatever other formulas compute.

    Attributes:
        metric: The metric that ranks are compared by.
        others: Computes the rest.
    """

    metric: str
    others: Formulas
    _spreads: dict[int, tuple[Profile, RankSpread]] = field(default_factory=dict)

    def knows(self, name: str) -> bool:
        """Whether a computed metric has this name."""
        return name in rank_columns(self.metric) or self.others.knows(name)

    def names(self, profile: Profile) -> list[str]:
        """Those that can be computed of a profile."""
        return [*rank_columns(self.metric), *self.others.names(profile)]

    def compute(self, profile: Profile, name: str) -> Computed:
        """Compute one.

        Raises:
            UsageError: The profile lacks what it is computed from.
        """
        if name not in rank_columns(self.metric):
            return self.others.compute(profile, name)
        if id(profile) not in self._spreads:
            self._spreads[id(profile)] = (profile, spread_of(profile, self.metric))
        value = name.removeprefix(f"{self.metric}_")
        values = _VALUES[value](self._spreads[id(profile)][1])
        return _Values(_UNITS.get(value, profile.metric(f"{self.metric}{MEAN}").unit), values)
