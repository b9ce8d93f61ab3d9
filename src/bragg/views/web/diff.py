"""A comparison as the page reads it: one tree with the values of both sides, and a table of what changed."""

from __future__ import annotations

import math
from typing import Any

from bragg.analyze.comparing.common_paths import UNRELATED, common_share, own_values
from bragg.analyze.comparing.comparison import Comparison
from bragg.model import Metric, MetricKind, Profile
from bragg.model.ids import ROOT, NodeId
from bragg.views.text.diff_text import change_text
from bragg.views.text.labels import Labels
from bragg.views.text.units import share_text
from bragg.views.web.payload import Analyses, Summary, pack

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
        side: Metric(side, paths.unit, MetricKind.INCLUSIVE, own_values(paths, values))
        for side, values in values.items()
    }
    labels = Labels(flat.tree.frames, with_device=False)
    difference = {
        "metric": paths.metric,
        "unit": paths.unit,
        "before": before,
        "after": after,
        "note": unrelated_note(paths),
        "rows": [_row(flat, node, labels) for node in flat.rows.tolist()],
    }
    summary = Summary(sentences=_sentences(paths, flat, labels), facts=[("before", before), ("after", after)])
    title = f"{before} → {after}"
    return pack(
        Profile({}, paths.tree, metrics), analyses=Analyses(title=title, summary=summary, difference=difference)
    )


def unrelated_note(paths: Comparison) -> str:
    """What the reader of two different programs must know; empty for runs of one."""
    share = common_share(paths)
    part = f"only {share_text(share)}" if share else "none"
    return f"{part} of the time is on call paths that both have" if share < UNRELATED else ""


def _row(flat: Comparison, node: NodeId, labels: Labels) -> dict[str, Any]:
    return {
        "label": labels.name(flat.tree.frame_of(node)),
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
    whole = f"{paths.metric}: {change_text(paths, ROOT)}."
    return [whole, *(f"{labels.name(flat.tree.frame_of(node))}: {change_text(flat, node)}." for node in changed)]
