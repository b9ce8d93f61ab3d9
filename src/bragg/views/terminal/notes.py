"""Lines below a view that say why numbers are missing or may be wrong."""

from __future__ import annotations

from collections.abc import Sequence

from bragg.model.meta.run import Run
from bragg.views.terminal.columns import Column
from bragg.views.text.style import printable

__all__ = ["absence_notes", "guess_notes"]


def absence_notes(columns: Sequence[Column], rows: Sequence[int]) -> list[str]:
    """Why rows have no value: each reason once, with the metrics that it is about."""
    names: dict[str, list[str]] = {}
    for column in columns:
        for reason in dict.fromkeys(filter(None, map(column.why_absent, rows))):
            names.setdefault(reason, []).append(column.name)
    return [f"{printable(', '.join(about))} n/a: {reason}" for reason, about in names.items()]


def guess_notes(run: Run, names: Sequence[str]) -> list[str]:
    """Which of the shown metrics are added up although the file does not say that they may be."""
    shown = [name for name in names if name.partition("[")[0] in run.assumed_inclusive]
    return (
        [f"the file does not say how {printable(', '.join(shown))} add up: shown with what is below"] if shown else []
    )
