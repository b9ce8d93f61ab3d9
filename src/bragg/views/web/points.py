"""A roofline as the web viewer reads it; the shape is that of `web/src/data/roofline.ts`."""

from __future__ import annotations

import dataclasses
from typing import Any

from bragg.analyze.roofline import Roofline


def roofline_of(chart: Roofline) -> dict[str, Any]:
    """All points and roofs: JSON values."""
    return {
        "roofs": [
            {**dataclasses.asdict(roof), "flops_per_s": sorted(roof.flops_per_s.items())} for roof in chart.roofs
        ],
        "points": [point.to_json() for point in chart.points],
        "time_ns": chart.time_ns,
        "widths": list(chart.widths),
    }
