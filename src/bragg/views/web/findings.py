"""What an analysis found, as the page reads it: the same as `bragg analyze --json`, and where to look at it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

import numpy as np

from bragg.analyze.report import Answered, finding_json
from bragg.model import Finding, Profile
from bragg.model.table import BoolArray
from bragg.model.transform import with_descendants
from bragg.views.text.analysis_text import LEAST_GAIN
from bragg.views.text.below_findings import no_cause
from bragg.views.text.bounds_text import bounds_sentence
from bragg.views.text.finding_text import OF_RUN, gain_text, place_text
from bragg.views.text.units import quantity_text

# Both are sums of the same times.
_SAME = 0.001


def findings_of(profile: Profile, answered: Answered, steady: tuple[int, int] | None) -> dict[str, Any]:
    """Everything that `bragg analyze` says: JSON values.

    Args:
        profile: What is shown.
        answered: What the rules say of it.
        steady: Begin and end of the steady state, which slices are taken from; None: not known.
    """
    found = answered.analysis.findings
    bounds = answered.bounds
    on_host = bool(bounds.host_ns)
    return {
        "sentence": bounds_sentence(bounds) if on_host or bounds.busy is not None else "",
        "nothing": no_cause(bounds) if on_host and not found else "",
        "parts": [] if on_host else [asdict(part) for part in bounds.parts],  # they are not of a GPU
        "leastGain": LEAST_GAIN,
        "fine": answered.analysis.fine,
        # Without a GPU no option of a recording makes the others judge.
        "skipped": [] if on_host else list(_skipped(answered)),
        "rows": [
            {
                **finding_json(finding),
                "gainText": gain_text(finding).removesuffix(OF_RUN),
                "gainOf": gain_of(answered, finding),
                "at": place_text(finding),
                "numbers": [
                    *((each.name, quantity_text(each.value, each.unit)) for each in finding.evidence),
                    *finding.details,
                ],
                "isWorth": finding.is_worth(LEAST_GAIN),
                "slice": _slice(profile, finding, steady),
            }
            for finding in found
        ],
    }


def gain_of(answered: Answered, finding: Finding) -> str:
    """What the gain of a finding is a share of; empty: it has none."""
    if finding.gain is None:
        return ""
    if finding.gain.is_once:
        return OF_RUN.strip()
    if answered.bounds.host_ns:
        is_of_all = math.isclose(finding.gain.of_ns, answered.bounds.host_ns, rel_tol=_SAME)
        return "of the host's time" if is_of_all else "of the steps"
    return "of the steady state" if answered.bounds.is_steady else "of the time of GPU work"


def _skipped(answered: Answered) -> Iterator[dict[str, Any]]:
    """What could not be judged, by what it misses."""
    by_need: dict[tuple[str, str], list[str]] = {}
    for rule, need in answered.analysis.skipped.items():
        if not need.is_of_program:
            by_need.setdefault((need.what, need.option), []).append(rule)
    for (what, option), rules in by_need.items():
        yield {"missing": what, "command": f"bragg run {option}" if option else "", "rules": rules}


def _slice(profile: Profile, finding: Finding, steady: tuple[int, int] | None) -> int | None:
    """The longest slice at or below the call path, of the steady state if it has one; None: there is none."""
    slices = profile.slices
    if finding.node is None or finding.node <= 0 or not len(slices):
        return None
    marked = np.zeros(len(profile.tree), np.bool_)
    marked[finding.node] = True
    for among in (marked, with_descendants(profile.tree, marked)):
        rows = _rows(profile, among, steady)
        if len(rows):
            return int(rows[np.argmax(slices.duration_ns[rows])])
    return None


def _rows(profile: Profile, nodes: BoolArray, steady: tuple[int, int] | None) -> Any:
    slices = profile.slices
    rows = np.flatnonzero(nodes[slices.node])
    if steady is None:
        return rows
    inside = rows[(slices.start_ns[rows] >= steady[0]) & (slices.start_ns[rows] < steady[1])]
    return inside if len(inside) else rows
