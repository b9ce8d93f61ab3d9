"""The hardware counters of a GPU, as `bragg doctor --counters` lists them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from bragg.views.text.style import printable


def counter_list_lines(told: Mapping[str, Any]) -> list[str]:
    """Our counters with the metrics behind them, sets with their passes, and CUPTI's metrics of one pass.

    Args:
        told: What the core's `list_counters` says.
    """
    return [printable(line) for line in _lines(told)]


def _lines(told: Mapping[str, Any]) -> Iterator[str]:
    counters, sets, metrics = told["counters"], told["sets"], told["metrics"]
    yield f"{told['chip']}: counters for bragg run --counters NAME[,NAME]"
    width = max(map(len, counters), default=0)
    for name, row in counters.items():
        unit = f", {row['unit']}" if row["unit"] else ""
        behind = ", ".join(row["metrics"]) or "none that this GPU counts in one pass with this CUPTI"
        yield f"  {name:<{width}}  {row['counts'] + unit:<24}  {behind}"
    yield ""
    yield "sets"
    for name, passes in sets.items():
        inside = [counter for counter, row in counters.items() if name in row["sets"].split() and row["metrics"]]
        fits = "" if passes == 1 else f" ({passes} passes together: some are left out)"
        yield f"  {name:<{width}}  {', '.join(inside)}{fits}"
    yield ""
    yield f"{len(metrics):,} metrics of CUPTI, each in one pass; those that do not fit beside the others are left out"
    yield from (f"  {metric}" for metric in metrics)
