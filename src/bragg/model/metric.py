"""Numbers measured at the nodes of a call tree."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bragg.model.table import BoolArray


class MetricKind(Enum):
    """How a metric behaves along a call path."""

    INCLUSIVE = "inclusive"
    """A node's value is its own plus that of its descendants."""
    EXCLUSIVE = "exclusive"
    """A node's value is its own alone; values of several nodes may be added."""
    PROPERTY = "property"
    """A fact about the node alone; values of several nodes do not add up."""


class Combine(Enum):
    """How the own values of nodes that become one node are combined."""

    SUM = "sum"
    MIN = "min"
    MAX = "max"

    @property
    def ufunc(self) -> np.ufunc:
        """The binary numpy function; the extremes skip NaN, which means no value."""
        return {Combine.SUM: np.add, Combine.MIN: np.fmin, Combine.MAX: np.fmax}[self]


@dataclass(frozen=True, eq=False)
class Metric:
    """One metric over all nodes of a tree.

    Attributes:
        name: As users name it.
        unit: `ns`, `B`, or `1` for counts.
        kind: See `MetricKind`.
        own: [n_nodes]: int64 or float64; float64 for properties, NaN where a node has none.
        combine: What happens when nodes become one; only properties choose.
        counted: bool [n_nodes]: nodes that have a value of their own, which may be 0; None: those where it is not 0, or
            of properties not NaN.
    """

    name: str
    unit: str
    kind: MetricKind
    own: NDArray[Any]
    combine: Combine = field(default=Combine.SUM)
    counted: BoolArray | None = None

    def __post_init__(self) -> None:
        is_property = self.kind is MetricKind.PROPERTY
        whole = np.issubdtype(np.asarray(self.own).dtype, np.integer)
        object.__setattr__(
            self, "own", np.ascontiguousarray(self.own, np.int64 if whole and not is_property else np.float64)
        )
        if is_property == (self.combine is Combine.SUM):
            raise ValueError(f"metric {self.name}: a {self.kind.value} metric cannot combine by {self.combine.value}")

    @property
    def has_value(self) -> BoolArray:
        """Nodes with a value of their own: [n_nodes]."""
        if self.counted is not None:
            return self.counted
        found: BoolArray = ~np.isnan(self.own) if self.kind is MetricKind.PROPERTY else self.own != 0
        return found

    def with_own(self, own: NDArray[Any], counted: BoolArray | None = None) -> Metric:
        """The same metric over other nodes: numbers [n_nodes], and `counted` [n_nodes] as in the class."""
        return Metric(self.name, self.unit, self.kind, own, self.combine, counted)

    def gather(self, target: NDArray[Any], n_nodes: int) -> Metric:
        """The metric after nodes moved.

        Args:
            target: Integers [n_nodes before]: the node that each node became part of; -1 drops its value.
            n_nodes: Nodes after the move.
        """
        empty = np.nan if self.kind is MetricKind.PROPERTY else 0
        own = np.full(n_nodes, empty, self.own.dtype)
        kept = target >= 0
        self.combine.ufunc.at(own, target[kept], self.own[kept])
        if self.counted is None:
            return self.with_own(own)
        counted = np.zeros(n_nodes, np.bool_)
        counted[target[kept & self.counted]] = True
        return self.with_own(own, counted)
