from __future__ import annotations

import json

from bragg.analyze.roofline import Roof, Roofline, RooflinePoint
from bragg.views.web.points import roofline_of

H200 = Roof("NVIDIA H200", 4.8e12, {16: 988e12, 8: 1976e12}, "data sheet", "")
MATMUL = RooflinePoint("matmul", 0, 3e6, 988e9, 1e9, 1e6, 0.2e6, "")
COPY = RooflinePoint("copy", None, 0.5e6, 0, 0, None, None, "no flops")


def test_points_carry_what_is_computed_of_them() -> None:
    points = json.loads(json.dumps(roofline_of(Roofline((H200,), (MATMUL, COPY), 4e6, (16,)))))["points"]
    assert (points[0]["intensity"], points[0]["bound"], points[0]["roof"]) == (988, "compute", 0)
    assert round(points[0]["util"], 3) == 0.333
    assert (points[1]["absent"], points[1]["util"], points[1]["intensity"]) == ("no flops", None, None)


def test_roofs_list_their_peaks_by_width() -> None:
    chart = roofline_of(Roofline((H200,), (), 4e6, (16,)))
    assert chart["roofs"][0]["flops_per_s"] == [(8, 1976e12), (16, 988e12)]
    assert (chart["roofs"][0]["source"], chart["time_ns"], chart["widths"]) == ("data sheet", 4e6, [16])
