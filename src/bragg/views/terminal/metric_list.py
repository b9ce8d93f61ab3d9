"""The metrics of a profile, and those that can be computed from them."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from typing import Any

from bragg.model import Profile
from bragg.views.terminal.columns import short_names
from bragg.views.terminal.formulas import Formulas
from bragg.views.text.style import Style, printable

_WIDTH = 100


def metric_list_lines(profile: Profile, formulas: Formulas, style: Style) -> list[str]:
    """Recorded metrics with unit, kind and short names, then the names of computed ones."""
    names = [printable(name) for name in profile.metrics]
    width = max(map(len, names), default=0)
    short = short_names(profile)
    rows = [
        f"- {name:<{width}}  {metric.unit:<3}  {metric.kind.value:<9}  {', '.join(short.get(metric.name, []))}".rstrip()
        for name, metric in zip(names, profile.metrics.values(), strict=True)
    ]
    computed = _wrapped(formulas.names(profile), style)
    return [
        style.bold("Recorded metrics:"),
        *(rows or ["none"]),
        *([style.bold("Computed metrics:"), *computed] if computed else []),
        *(f"Left out, because its values are text: {printable(name)}" for name in profile.run.text_metrics),
    ]


def metric_list_json(profile: Profile, formulas: Formulas) -> dict[str, Any]:
    """JSON values: the same."""
    recorded = [{"name": item.name, "unit": item.unit, "kind": item.kind.value} for item in profile.metrics.values()]
    return {"metrics": recorded, "computed": formulas.names(profile)}


def _wrapped(names: Iterable[str], style: Style) -> list[str]:
    width = max(min(style.width or _WIDTH, _WIDTH), 40)
    return textwrap.wrap(", ".join(names), width, break_long_words=False, break_on_hyphens=False)
