"""What a view of a profile shows."""

from __future__ import annotations

import re
from dataclasses import dataclass

from bragg.views.terminal.formulas import NO_FORMULAS, Formulas
from bragg.views.text.labels import CodeFormat


@dataclass(frozen=True)
class ViewOptions:
    """What to show of a profile.

    Attributes:
        metrics: Names as users write them, the first decides what is hot; empty for the usual ones.
        sort: Metric that decides instead, or `name`; None for the first metric.
        include: Regular expression; only call paths through matches.
        exclude: Regular expression; no call paths through matches.
        threshold: Share of the total, 0 to 1, below which rows are left out.
        least: Value below which rows are left out, of what decides and in its unit.
        max_depth: Rows below each other; None for all.
        max_lines: Lines with numbers; None for all.
        full_names: Whole kernel names and paths.
        fold: Library frames together, chains of callers on one line.
        keep: Names of library frames that are shown, besides those of models.
        code: How code is written; None for the name before the place.
        formulas: Computes metrics that were not recorded.
    """

    metrics: tuple[str, ...] = ()
    sort: str | None = None
    include: str | None = None
    exclude: str | None = None
    threshold: float = 0.0
    least: float = 0.0
    max_depth: int | None = None
    max_lines: int | None = None
    full_names: bool = False
    fold: bool = True
    keep: tuple[re.Pattern[str], ...] = ()
    code: CodeFormat | None = None
    formulas: Formulas = NO_FORMULAS
