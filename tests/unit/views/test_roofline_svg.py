from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

from bragg.analyze.roofline import Roof, Roofline, RooflinePoint
from bragg.views.roofline_svg import roofline_svg
from bragg.views.text.roofline_text import roofline_lines, si_text
from bragg.views.text.style import PLAIN

GOLDEN = Path(__file__).parents[2] / "golden" / "roofline" / "two_kernels.svg"
SVG = "{http://www.w3.org/2000/svg}"
H200 = Roof("NVIDIA H200", 4.8e12, {8: 1976e12, 16: 988e12}, "data sheet", "")
MATMUL = RooflinePoint("matmul<BM=128>", 0, 3e6, 988e9, 1e9, 1e6, 0.2e6, "")
SOFTMAX = RooflinePoint("softmax", 0, 1e6, 1e9, 2.4e9, 0.001e6, 0.5e6, "")
COPY = RooflinePoint("copy & set", 0, 0.5e6, 0, 1.2e9, 0.0, 0.25e6, "no flops")
CHART = Roofline((H200,), (MATMUL, SOFTMAX, COPY), 4.5e6, (16,))


def shapes(picture: str, name: str) -> list[ElementTree.Element]:
    return ElementTree.fromstring(picture).findall(f".//{SVG}{name}")


def words(picture: str) -> list[str]:
    return [(line.text or "") + "".join(child.tail or "" for child in line) for line in shapes(picture, "text")]


def test_the_picture_is_the_golden_one() -> None:
    assert roofline_svg(CHART, "Two kernels") == GOLDEN.read_text(encoding="utf-8")


def test_every_point_with_a_place_has_a_circle_and_a_tooltip() -> None:
    circles = [circle for circle in shapes(roofline_svg(CHART, ""), "circle") if circle.find(f"{SVG}title") is not None]
    assert [circle.findtext(f"{SVG}title") for circle in circles] == [
        "matmul<BM=128>\n329 Tflop/s at 988 flop/byte\n33.3 % of the compute roof\n66.7 % of GPU time",
        "softmax\n1 Tflop/s at 0.417 flop/byte\n50.0 % of the memory roof\n22.2 % of GPU time",
    ]
    assert [circle.get("class") for circle in circles] == ["compute", "memory"]
    areas = [float(circle.get("r", "")) ** 2 for circle in circles]
    assert areas[0] / areas[1] == pytest.approx(3, rel=0.02)


def test_a_point_below_its_roof_is_drawn_below_its_line() -> None:
    picture = roofline_svg(CHART, "")
    levels = [
        line for line in shapes(picture, "line") if line.get("class") == "roof" and line.get("y1") == line.get("y2")
    ]
    circle = next(circle for circle in shapes(picture, "circle") if circle.find(f"{SVG}title") is not None)
    assert len(levels) == 1
    assert float(circle.get("cy", "")) > float(levels[0].get("y1", ""))


def test_what_is_not_drawn_is_listed() -> None:
    assert "not drawn: copy & set (no flops)" in words(roofline_svg(CHART, ""))


def test_it_needs_nothing_else_and_suits_light_and_dark_pages() -> None:
    picture = roofline_svg(CHART, "")
    assert not re.search(r"href|url\(|<script|<image", picture)
    assert "prefers-color-scheme:dark" in picture
    assert ElementTree.fromstring(picture).findtext(f"{SVG}desc", "").count("\n") == 3


def test_many_points_are_named_up_to_the_room_there_is() -> None:
    many = tuple(replace(MATMUL, name=f"kernel {index}") for index in range(40))
    lines = words(roofline_svg(replace(CHART, points=many), ""))
    assert "kernel 21" in lines
    assert "kernel 22" not in lines
    assert "and 18 more" in lines


@pytest.mark.parametrize(
    "chart",
    [
        replace(CHART, points=()),
        replace(CHART, points=(COPY,), widths=()),
        replace(CHART, roofs=(replace(H200, bytes_per_s=None, missing="no memory clock"),)),
        replace(CHART, roofs=(replace(H200, flops_per_s={}, missing="no peaks"),)),
        replace(CHART, roofs=(H200, replace(H200, device="NVIDIA B200", bytes_per_s=8e12))),
        Roofline(
            (),
            (replace(MATMUL, roof=None, compute_ns=None, memory_ns=None, absent="its device is unknown"),),
            3e6,
            (16,),
        ),
    ],
)
def test_parts_that_are_missing_leave_a_picture_of_the_rest(chart: Roofline) -> None:
    ElementTree.fromstring(roofline_svg(chart, "a < b"))


def test_the_table_has_a_line_for_each_roof_and_point() -> None:
    assert roofline_lines(CHART, PLAIN) == [
        "NVIDIA H200: 4.8 TB/s, 988 Tflop/s at 16 bit; source: data sheet",
        "",
        "  GPU time    share  flop/byte         reached   of roof  bound    name",
        "   3.00 ms   66.7 %        988     329 Tflop/s    33.3 %  compute  matmul<BM=128>",
        "   1.00 ms   22.2 %     0.4167       1 Tflop/s    50.0 %  memory   softmax",
        "    500 us   11.1 %          0        2.4 TB/s    50.0 %  memory   copy & set  (no flops)",
    ]


@pytest.mark.parametrize(
    ("value", "expected"),
    [(0, "0 B/s"), (999, "999 B/s"), (999.9, "1 kB/s"), (4.8e12, "4.8 TB/s"), (1.979e15, "1.98 PB/s")],
)
def test_rates_have_three_digits_and_a_prefix(value: float, expected: str) -> None:
    assert si_text(value, "B/s") == expected
