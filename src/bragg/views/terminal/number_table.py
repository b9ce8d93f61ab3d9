"""The numbers at the left of every view: a column for each metric, with share and bar of the first."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from bragg.views.terminal.columns import Column
from bragg.views.terminal.style import Style
from bragg.views.terminal.units import share_text

__all__ = ["NumberTable"]

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
        share_and_bar = 2 + _SHARE_WIDTH + 2 + _BAR_WIDTH if self._has_shares else 0
        return sum(self._widths) + 2 * (len(self._widths) - 1) + share_and_bar

    def header(self) -> str:
        """Metric names with their units."""
        return self._join(self._titles, "share".rjust(_SHARE_WIDTH) + " " * (2 + _BAR_WIDTH))

    def text(self, row: int) -> str:
        """The numbers of one row."""
        numbers = [column.text(row) for column in self.columns]
        if not self._has_shares:
            return self._join(numbers, "")
        share = self.columns[0].share(row)
        share_and_bar = f"{share_text(share):>{_SHARE_WIDTH}}  {self.style.bar(share, _BAR_WIDTH)}"
        return self._join(numbers, self.style.heat(share_and_bar, share))

    def _join(self, texts: Sequence[str], after_first: str) -> str:
        padded = [text.rjust(width) for text, width in zip(texts, self._widths, strict=True)]
        return "  ".join([padded[0], *([after_first] if self._has_shares else []), *padded[1:]])

    @cached_property
    def _titles(self) -> list[str]:
        return [f"{column.name} {column.scale.unit}".rstrip() for column in self.columns]

    @cached_property
    def _widths(self) -> list[int]:
        largest = (float(np.nanmax(column.values[self.rows], initial=0.0)) for column in self.columns)
        texts = (column.scale.text(value) for column, value in zip(self.columns, largest, strict=True))
        return [max(len(title), len(text), _LEAST_WIDTH) for title, text in zip(self._titles, texts, strict=True)]

    @property
    def _has_shares(self) -> bool:
        return not math.isnan(self.columns[0].total)
