"""The roofline: where its points and roofs are, and what can be chosen."""

from __future__ import annotations

import math
import re
from typing import Any

import pytest

from bragg.model import Profile
from tests.support.profiles import profile_from_text
from tests.support.waiting import beginning, expect, expect_address
from tests.support.work import H200, working_profile

TEXT = """
root
  step
    matmul 800us x4 @0
    softmax 200us x4 @0
    sort 50us @0
"""
FLOPS = {"matmul": 4e14 * 8e-4, "softmax": 1e12 * 2e-4}
BYTES = {"matmul": 1e12 * 8e-4, "softmax": 2.5e12 * 2e-4, "sort": 1e6}


def profile() -> Profile:
    return working_profile(TEXT, [H200], flops16=FLOPS, bytes=BYTES)


def number(element: Any, name: str) -> float:
    return float(element.get_attribute(name))


@pytest.fixture
def roofline(pages: Any) -> Any:
    return pages.open(profile(), "view=roofline", width=1200)


def test_points_are_log_log_and_their_areas_are_times(roofline: Any) -> None:
    matmul, softmax = (roofline.locator(f"circle[data-point='{row}']") for row in (0, 1))
    decade_x = (number(matmul, "cx") - number(softmax, "cx")) / math.log10(400 / 0.4)
    decade_y = (number(softmax, "cy") - number(matmul, "cy")) / math.log10(4e14 / 1e12)
    grid = roofline.locator("line.grid").evaluate_all(
        "lines => lines.map(line => [line.x1, line.y1].map(v => v.baseVal.value))"
    )
    xs, ys = sorted({x for x, _ in grid}), sorted({y for _, y in grid})
    assert decade_x == pytest.approx(xs[2] - xs[1], rel=0.01)
    assert decade_y == pytest.approx(ys[2] - ys[1], rel=0.01)
    assert (number(matmul, "r") / number(softmax, "r")) ** 2 == pytest.approx(4, rel=0.02)


def test_a_point_is_as_far_below_its_roof_as_it_could_be_faster(roofline: Any) -> None:
    roof = roofline.locator("line.roof:not(.other)").first
    matmul = roofline.locator("circle[data-point='0']")
    ys = roofline.locator("line.grid").evaluate_all("lines => lines.map(line => line.y1.baseVal.value)")
    decade = sorted(set(ys))[2] - sorted(set(ys))[1]
    reached = 10 ** (-(number(matmul, "cy") - number(roof, "y1")) / decade)
    util = roofline.locator(".roofline-list ol li").first.locator(".number")
    expect(util).to_have_text(f"{reached * 100:.1f} %")


def test_every_precision_has_its_roof_and_its_source(roofline: Any) -> None:
    labels = " ".join(roofline.locator("svg text").all_text_contents())
    assert "16 bit" in labels
    assert "4 and 8 bit" in labels
    assert "memory, 4.81 TB/s" in labels
    expect(roofline.locator(".roofline-list")).to_contain_text("data sheet")


def test_pointing_at_a_point_tells_its_numbers(roofline: Any) -> None:
    roofline.locator("circle[data-point='1']").hover()
    shown = roofline.get_by_role("tooltip")
    expect(shown).to_have_text(beginning("softmax"))
    for text in ("1.00 Tflop/s", "of the memory roof", "200 us"):
        expect(shown).to_contain_text(text)


def test_a_click_chooses_the_kernel_everywhere(roofline: Any) -> None:
    roofline.locator("circle[data-point='0']").click()
    expect_address(roofline, "kernel=matmul")
    expect(roofline.locator("li.chosen")).to_have_text(beginning("matmul"))
    roofline.get_by_role("link", name="Flame").click()
    expect_address(roofline, "view=flame", "node=2")


def test_keys_walk_from_point_to_point(roofline: Any) -> None:
    for key, name in (("ArrowRight", "matmul"), ("j", "softmax"), ("k", "matmul")):
        roofline.keyboard.press(key)
        expect(roofline).to_have_url(re.compile(f"kernel={name}$"))
    roofline.keyboard.press("Escape")
    expect_address(roofline, lacks="kernel=")


def test_an_address_chooses_a_kernel_by_name_or_node(pages: Any) -> None:
    for place in ("kernel=softmax", "node=3"):
        page = pages.open(profile(), f"view=roofline&{place}")
        expect(page.locator("li.chosen")).to_have_text(beginning("softmax"))
    page = pages.open(profile(), "view=roofline&kernel=nonsense&node=-7")
    expect(page.locator("li.chosen")).to_have_count(0)


def test_what_is_not_drawn_is_listed_with_the_reason(roofline: Any) -> None:
    expect(roofline.locator(".roofline-list")).to_contain_text("no flops: sort, ")
    expect(roofline.locator("circle.point")).to_have_count(2)


def test_what_is_lacking_is_said_with_the_way_to_record_it(pages: Any) -> None:
    page = pages.open(profile_from_text(TEXT), "view=roofline")
    expect(page.locator("main")).to_contain_text("needs the flops and bytes of kernels")
    expect(page.locator("main")).to_contain_text("launch_metadata")
    page = pages.open(profile_from_text("root\n  step host=3ms"), "view=roofline")
    expect(page.locator("main")).to_contain_text("no GPU time")


def test_names_are_text(pages: Any) -> None:
    name = "<img/src=x/onerror=alert(1)>"
    page = pages.open(
        working_profile(TEXT.replace("matmul", name), [H200], flops16={name: 1e9}, bytes={name: 1e9}), "view=roofline"
    )
    page.locator("circle.point").hover()
    expect(page.get_by_role("tooltip")).to_have_text(beginning(name))
    expect(page.locator("img")).to_have_count(0)


def test_on_a_phone_the_list_stands_below_the_chart(pages: Any) -> None:
    page = pages.open(profile(), "view=roofline", width=390, height=844, theme="dark")
    chart, names = (page.locator(f".roofline-{part}").bounding_box() for part in ("plot", "list"))
    assert names["y"] >= chart["y"] + 280
    assert page.evaluate("document.documentElement.scrollWidth") == 390
