"""How long single launches took: columns of a table by kernel."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from bragg.model import DurationTable, FrameKind, MetricKind, Profile
from bragg.model.table import BoolArray, FloatArray, Int64Array
from bragg.views.terminal.formulas import Computed, Formulas

_FIRST = "gpu_time_first"
_QUANTILES = {"gpu_time_p50": 0.5, "gpu_time_p95": 0.95, "gpu_time_p99": 0.99}
_NAMES = (*_QUANTILES, _FIRST)
_NOT_KEPT = "how long single launches took was not recorded"
_NOT_OF_COPIES = "of copies and sets only the sum, the shortest and the longest are kept"
_NOT_BY_PATH = "single launches are known by kernel, not by call path"


@dataclass(frozen=True, eq=False)
class _Column:
    unit: str
    kind: MetricKind
    values: FloatArray
    reason: Callable[[int], str]

    def why_absent(self, node: int) -> str:
        return self.reason(node)


@dataclass(frozen=True, eq=False)
class LaunchTimes:
    """Percentiles of the durations of launches, and the first one, by row of a table.

    Attributes:
        durations: Histograms; `frame` is the row.
        n_rows: Rows of the table.
        started_ns: When the recording began; None when that is not known.
    """

    durations: DurationTable
    n_rows: int
    started_ns: int | None

    @classmethod
    def of(cls, profile: Profile, row_of_node: Int64Array, n_rows: int) -> LaunchTimes:
        """Those of a profile whose nodes are put together as rows; `row_of_node` is int64 [n_nodes]."""
        row_of_frame = np.zeros(len(profile.tree.frames), np.int64)
        row_of_frame[profile.tree.frame] = row_of_node
        durations = profile.durations.replace(frame=row_of_frame[profile.durations.frame]).combined()
        return cls(durations, n_rows, profile.run.started_ns)

    def column(self, table: Profile, name: str) -> Computed:
        """A percentile, or the first launch, for each row of a table."""
        values = self._first_seen() if name == _FIRST else self._quantile(table, _QUANTILES[name])
        is_whole = self._is_whole(table)
        return _Column("ns", MetricKind.PROPERTY, np.where(is_whole, values, np.nan), self._why_absent(table))

    def _why_absent(self, table: Profile) -> Callable[[int], str]:
        is_kernel = np.zeros(self.n_rows, np.bool_) if "gpu_count" not in table.metrics else table.own("gpu_count") > 0
        is_whole = self._is_whole(table)
        is_copy = table.tree.kind == FrameKind.MEMORY
        reason = _NOT_BY_PATH if len(self.durations) else _NOT_KEPT
        return lambda row: (_NOT_OF_COPIES if is_copy[row] else reason) if is_kernel[row] and not is_whole[row] else ""

    def _is_whole(self, table: Profile) -> BoolArray:
        """Rows whose histogram holds their launches and no others: [n_rows]."""
        if "gpu_count" not in table.metrics:
            return np.zeros(self.n_rows, np.bool_)
        found: BoolArray = (self._n_launches > 0) & (self._n_launches == table.own("gpu_count"))
        return found

    @cached_property
    def _n_launches(self) -> Int64Array:
        return self.durations.launches(self.n_rows)

    def _quantile(self, table: Profile, q: float) -> FloatArray:
        """A quantile of the launches of each row, within the shortest and the longest: ns [n_rows]."""
        middle = self.durations.quantiles(q, self.n_rows)
        if "gpu_time_min" not in table.metrics:
            return middle
        shortest, longest = table.own("gpu_time_min"), table.own("gpu_time_max")
        return np.fmin(np.fmax(middle, shortest), longest)  # type: ignore[no-any-return]

    def _first_seen(self) -> FloatArray:
        """Since the beginning of the recording, or since the first launch: ns [n_rows]."""
        first = np.full(self.n_rows, np.iinfo(np.int64).max)
        np.minimum.at(first, self.durations.frame, self.durations.first_ns)
        origin = self.started_ns if self.started_ns is not None else int(first.min(initial=np.iinfo(np.int64).max))
        since: FloatArray = np.maximum(first - origin, 0).astype(np.float64)
        return since


@dataclass(frozen=True, eq=False)
class _WithLaunchTimes:
    formulas: Formulas
    times: LaunchTimes | None

    def knows(self, name: str) -> bool:
        return name in _NAMES or self.formulas.knows(name)

    def names(self, profile: Profile) -> list[str]:
        return [*_NAMES, *self.formulas.names(profile)]

    def compute(self, profile: Profile, name: str) -> Computed:
        if self.times is not None and name in _NAMES:
            return self.times.column(profile, name)
        return self.formulas.compute(profile, name)


def with_launch_times(formulas: Formulas, times: LaunchTimes | None = None) -> Formulas:
    """The formulas, and those of single launches; without `times` only their names."""
    return _WithLaunchTimes(formulas, times)
