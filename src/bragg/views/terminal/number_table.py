"""The numbers at the left of every view: a column for each metric, with share and bar of the first."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from bragg.views.terminal.columns import Column
from bragg.views.text.style import Style, printable
from bragg.views.text.units import share_text

_SHARE_WIDTH = len("100.0 %")
_BAR_WIDTH = 8
_LEAST_WIDTH = len("<0.01")


@dataclass(frozen=True, eq=False)
class NumberTable:
    """Numbers of the rows of a view.

    Attributes:
        columns: Metrics; the first is shown with its share.
        rows: The rows to show, for the width of the columns.
        style: How to decorate.
    """

    columns: Sequence[Column]
    rows: Sequence[int]
    style: Style

    @property
    def width(self) -> int:
        """Columns of the terminal that the numbers take, without the gap to what follows."""
        share = 2 + self._share_width if self._has_shares else 0
        return sum(self._widths) + 2 * (len(self._widths) - 1) + share

    def header(self) -> str:
        """Metric names with their units."""
        return self._join(self._titles, "share".rjust(_SHARE_WIDTH).ljust(self._share_width))

    def text(self, row: int) -> str:
        """The numbers of one row."""
        numbers = [column.text(row) for column in self.columns]
        if not self._has_shares:
            return self._join(numbers, "")
        share = self.columns[0].share(row)
        if math.isnan(share):
            return self._join(numbers, " " * self._share_width)
        bar = "" if self.style.is_narrow else f"  {self.style.bar(share, _BAR_WIDTH)}"
        return self._join(numbers, self.style.heat(f"{share_text(share):>{_SHARE_WIDTH}}{bar}", share))

    def _join(self, texts: Sequence[str], after_first: str) -> str:
        padded = [text.rjust(width) for text, width in zip(texts, self._widths, strict=True)]
        return "  ".join([padded[0], *([after_first] if self._has_shares else []), *padded[1:]])

    @cached_property
    def _titles(self) -> list[str]:
        """Names with units, once; what repeats the first name is left out: `gpu_time ms`, `avg us`, `time/s`."""
        first = self.columns[0].name
        begin = first.rpartition("_")[0]
        prefix = f"{begin if '_' in begin else first}_"  # `gpu_idle_` of gpu_idle_time, not `gpu_` of gpu_time
        names = [first, *(column.name.removeprefix(prefix) for column in self.columns[1:])]
        return [_title(name, column.scale.unit) for name, column in zip(names, self.columns, strict=True)]

    @cached_property
    def _widths(self) -> list[int]:
        return [
            max(len(title), _LEAST_WIDTH, *map(len, self._longest(column)))
            for title, column in zip(self._titles, self.columns, strict=True)
        ]

    def _longest(self, column: Column) -> Iterator[str]:
        """Texts of which one is the longest of a column."""
        values = column.values[self.rows]
        for extreme in (np.nanmax(values, initial=0.0), np.nanmin(values, initial=0.0)):
            yield column.scale.text(float(extreme)) + (" " if column.is_difference else "")

    @property
    def _share_width(self) -> int:
        return _SHARE_WIDTH if self.style.is_narrow else _SHARE_WIDTH + 2 + _BAR_WIDTH

    @property
    def _has_shares(self) -> bool:
        return not math.isnan(self.columns[0].total)


def _title(name: str, unit: str) -> str:
    """The name, and the unit unless the name tells it: `time/s`, `tflop/s`."""
    is_told = name.endswith(f"/{unit}") or (name.endswith("/s") and unit.endswith("/s"))
    return printable(name if not unit or is_told else f"{name} {unit}")
