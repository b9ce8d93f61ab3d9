"""What a rank's profile tells of its clock."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bragg.model.facts import Facts


@dataclass(frozen=True)
class RankClock:
    """The clock that the times of a profile are of.

    Attributes:
        boot: Which boot of which machine; processes that agree have one monotonic clock. Empty: not known.
        ahead_ns: What it is ahead of that clock; None: not known.
        exchanges: A row for each time that rank 0 was asked: when, what its clock was ahead, the time on the way.
    """

    boot: str = ""
    ahead_ns: int | None = None
    exchanges: tuple[tuple[int, int, int], ...] = ()

    @classmethod
    def of_meta(cls, meta: Mapping[str, Any]) -> RankClock:
        """What the recorder noted."""
        from statistics import median  # 4 ms, which only profiles of ranks need

        readings = _rows(meta.get("clocks"), 4)
        ahead_ns = round(median(row[0] - row[2] for row in readings)) if readings else None
        exchanges = tuple((row[0], row[1], row[2]) for row in _rows(meta.get("clock_exchanges"), 3))
        return cls(Facts(meta).text("boot"), ahead_ns, exchanges)

    @classmethod
    def from_json(cls, row: Mapping[str, Any]) -> RankClock:
        """What `to_json` gave."""
        facts = Facts(row)
        exchanges = tuple((when, ahead, way) for when, ahead, way in _rows(row.get("exchanges"), 3))
        return cls(facts.text("boot"), facts.integer("ahead_ns"), exchanges)

    def to_json(self) -> dict[str, Any]:
        """JSON values."""
        return {"boot": self.boot, "ahead_ns": self.ahead_ns, "exchanges": [list(row) for row in self.exchanges]}


def _rows(value: object, n_columns: int) -> list[Sequence[int]]:
    """The rows of a table of whole numbers; others are left out."""
    rows = value if isinstance(value, list) else []
    return [
        row
        for row in rows
        if isinstance(row, list) and len(row) == n_columns and all(type(each) is int for each in row)
    ]
