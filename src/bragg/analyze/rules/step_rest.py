"""Training steps most of whose time lies in none of their regions."""

from __future__ import annotations

from collections.abc import Iterator

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.engine import Rule
from bragg.model import Finding, Severity
from bragg.model.finding import percent_text

_LARGE_REST = 0.5


def _find(evidence: Evidence) -> Iterator[Finding]:
    regions = evidence.regions
    if regions is None or "region_time" not in regions.metrics or not regions.total("region_time"):
        return
    share = float(regions.own("region_time")[-1]) / regions.total("region_time")
    if share > _LARGE_REST:
        yield Finding(
            "step-rest",
            Severity.NOTE,
            f"other holds {percent_text(share)} of a step, for example copies to the GPU and waiting for it",
            hint="bragg view -m host_time",
        )


RULE = Rule(_find, "steps most of whose time lies in none of their regions")
