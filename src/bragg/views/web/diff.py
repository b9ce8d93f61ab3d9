"""A comparison as the page reads it: one tree with the values of both sides, and a table of what changed."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from bragg.analyze.comparing.comparison import Comparison
from bragg.model import Metric, MetricKind, Profile
from bragg.model.table import FloatArray
from bragg.views.text.diff_text import change_text
from bragg.views.text.labels import Labels
from bragg.views.web.payload import Analyses, Summary, pack

__all__ = ["pack_difference"]

_N_SENTENCES = 3


def pack_difference(paths: Comparison, flat: Comparison, before: str, after: str) -> bytes:
    """What `web/src/data/difference.ts` describes, as bytes for the page.

    Args:
        paths: By call path, of a metric that adds up.
        flat: Of the same metric, by what ran.
        before: What the reader calls the first profile.
        after: And the second.
    """
    values = {"before": paths.before, "after": paths.after}
    metrics = {
        side: Metric(side, paths.unit, MetricKind.INCLUSIVE, _own(paths, values)) for side, values in values.items()
    }
    labels = Labels(flat.tree.frames, with_device=False)
    difference = {
        "metric": paths.metric,
        "unit": paths.unit,
        "before": before,
        "after": after,
        "rows": [_row(flat, node, labels) for node in flat.rows.tolist()],
    }
    summary = Summary(sentences=_sentences(paths, flat, labels), facts=[("before", before), ("after", after)])
    title = f"{before} → {after}"
    return pack(
        Profile({}, paths.tree, metrics), analyses=Analyses(title=title, summary=summary, difference=difference)
    )


def _own(paths: Comparison, inclusive: FloatArray) -> FloatArray:
    """The values without what ran below; no less than nothing, which sums of fractions may give."""
    inner = paths.tree.parent[1:]
    below = np.bincount(inner, weights=inclusive[1:], minlength=len(inclusive))
    return np.maximum(inclusive - below, 0)


def _row(flat: Comparison, node: int, labels: Labels) -> dict[str, Any]:
    return {
        "label": labels.name(int(flat.tree.frame[node])),
        "before": float(flat.before[node]),
        "after": float(flat.after[node]),
        "count_before": _count(flat.count_before[node]),
        "count_after": _count(flat.count_after[node]),
    }


def _count(value: float) -> float | None:
    return None if math.isnan(value) else float(value)


def _sentences(paths: Comparison, flat: Comparison, labels: Labels) -> list[str]:
    """The change of the whole, and the largest changes of what ran."""
    changed = [node for node in flat.rows.tolist() if flat.change[node]][:_N_SENTENCES]
    whole = f"{paths.metric}: {change_text(paths, 0)}."
    return [whole, *(f"{labels.name(int(flat.tree.frame[node]))}: {change_text(flat, node)}." for node in changed)]
