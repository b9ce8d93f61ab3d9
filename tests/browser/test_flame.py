"""The flame graph: its boxes, zoom, search, and what the address says of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.support.profiles import profile_from_text

ROW_PX = 20
KERNEL, PYTHON, SCOPE, MATCH = "rgb(230, 159, 0)", "rgb(86, 180, 233)", "rgb(240, 228, 66)", "rgb(204, 121, 167)"
PROFILE = """
root
  forward
    train.py:12@step
      matmul 300us x3 @0
      relu 100us x2 @0
  backward
    /usr/lib/python3/dist-packages/torch/autograd.py:4@engine
      /usr/lib/python3/dist-packages/torch/graph.py:9@run
        matmul 400us x3 @0
  other host=9ms
    copy 200us #memory @0
"""

Pixel = Callable[[Any, str, int, int], str]


def middle(depth: int) -> int:
    """Height of the middle of a level, away from letters."""
    return depth * ROW_PX + 2


def state(page: Any) -> str:
    return str(page.evaluate("location.hash"))


def detail(page: Any) -> str:
    return str(page.locator(".flame .detail").inner_text())


@pytest.fixture
def flame(pages: Any) -> Any:
    return pages.open(profile_from_text(PROFILE), "view=flame", width=1000)


def test_boxes_are_as_wide_as_their_share_and_the_largest_is_left(flame: Any, pixel: Pixel) -> None:
    # 1 ms in 1000 px: forward and backward have 400 each, the rest 200; equal ones stay in their order.
    assert [pixel(flame, "canvas", x, middle(1)) for x in (200, 600, 900)] == [SCOPE, SCOPE, SCOPE]
    assert pixel(flame, "canvas", 398, middle(2)) == PYTHON
    assert pixel(flame, "canvas", 200, middle(3)) == KERNEL
    assert pixel(flame, "canvas", 900, middle(3)) == "rgb(255, 255, 255)"


def test_click_zooms_and_escape_goes_back(flame: Any, pixel: Pixel) -> None:
    flame.locator("canvas").click(position={"x": 200, "y": middle(2) + 8})
    assert "train.py:12" in detail(flame)
    assert pixel(flame, "canvas", 990, middle(2)) == PYTHON
    assert "node=2" in state(flame)
    flame.keyboard.press("0")
    assert pixel(flame, "canvas", 990, middle(2)) != PYTHON
    assert "node" not in state(flame)


def test_keys_walk_along_the_boxes(flame: Any) -> None:
    names = []
    for key in ("ArrowDown", "ArrowRight", "ArrowRight", "ArrowLeft", "ArrowDown", "ArrowUp"):
        flame.keyboard.press(key)
        names.append(detail(flame).split("\n")[0].split()[0])
    assert names == ["forward", "backward", "other", "backward", "[torch:", "backward"]


def test_search_marks_matches_and_says_their_share(flame: Any, pixel: Pixel) -> None:
    flame.keyboard.press("/")
    flame.keyboard.type("matmul")
    assert "70.0 % in 2 matches" in flame.locator(".tools .note").inner_text()
    assert pixel(flame, "canvas", 100, middle(3)) == MATCH
    assert pixel(flame, "canvas", 350, middle(3)) != MATCH
    flame.keyboard.press("Escape")
    assert flame.locator(".tools .note").inner_text() == ""


def test_expressions_match_nested_boxes_once(flame: Any) -> None:
    flame.get_by_label("Search: text or /expression/").fill("/^forward$|relu/")
    assert "40.0 % in 2 matches" in flame.locator(".tools .note").inner_text()


def test_bottom_up_adds_up_a_kernel_over_its_callers(flame: Any, pixel: Pixel) -> None:
    flame.get_by_role("button", name="Bottom up").click()
    assert pixel(flame, "canvas", 690, middle(1)) == KERNEL
    flame.locator("canvas").click(position={"x": 300, "y": middle(1) + 8})
    assert "700 us, 70.0 % of all" in detail(flame)
    assert "direction=up" in state(flame)


def test_library_frames_are_folded_and_unfolded(flame: Any) -> None:
    flame.keyboard.press("ArrowDown")
    flame.keyboard.press("ArrowRight")
    flame.keyboard.press("ArrowDown")
    assert detail(flame).startswith("[torch: 2 frames]")
    flame.get_by_label("fold libraries").uncheck()
    assert detail(flame).startswith("engine")
    assert "libraries=false" in state(flame)


def test_width_follows_the_side(flame: Any) -> None:
    flame.get_by_role("button", name="CPU").click()
    flame.keyboard.press("ArrowDown")
    assert detail(flame).startswith("other")
    assert "9.00 ms, 100.0 % of all" in detail(flame)


def test_forward_and_backward_have_colours(flame: Any, pixel: Pixel) -> None:
    flame.get_by_label("colour").select_option("phase")
    colours = [pixel(flame, "canvas", x, middle(3)) for x in (200, 600)]
    assert colours == ["rgb(86, 180, 233)", "rgb(204, 121, 167)"]


def test_metric_colours_the_box_with_most_of_it_the_most(flame: Any, pixel: Pixel) -> None:
    flame.get_by_label("colour").select_option("gpu_count")
    matmul, relu = (pixel(flame, "canvas", x, middle(3)) for x in (100, 350))
    assert matmul != relu
    assert sum(map(int, matmul[4:-1].split(", "))) < sum(map(int, relu[4:-1].split(", ")))


def test_address_opens_the_same_picture(pages: Any, flame: Any) -> None:
    flame.get_by_role("button", name="Bottom up").click()
    flame.get_by_label("Search: text or /expression/").fill("relu")
    flame.locator("canvas").click(position={"x": 300, "y": middle(1) + 8})
    again = pages.open(profile_from_text(PROFILE), state(flame)[1:], width=1000)
    assert detail(again) == detail(flame)
    assert again.get_by_label("Search: text or /expression/").input_value() == "relu"


def test_node_that_another_view_chose_is_seen_although_the_picture_was_zoomed(flame: Any) -> None:
    flame.locator("canvas").click(position={"x": 200, "y": middle(2) + 8})
    flame.keyboard.press("3")
    flame.locator("td.name", has_text="copy").click()
    flame.get_by_role("link", name="Summary").click()
    flame.get_by_role("link", name="copy").click()
    assert detail(flame).startswith("copy")
    assert "zoom=0" not in state(flame)


def test_kernel_is_found_in_the_table(flame: Any) -> None:
    flame.locator("canvas").click(position={"x": 350, "y": middle(3) + 8})
    flame.locator(".detail .links").get_by_role("button", name="Kernels").click()
    assert flame.locator("tr.row[aria-expanded=true] td.name").inner_text() == "relu"


def test_dark_picture_is_dark_from_the_first(pages: Any, pixel: Pixel) -> None:
    page = pages.open(profile_from_text(PROFILE), "view=flame", width=1000, theme="dark")
    assert pixel(page, "canvas", 900, middle(3)) == "rgb(20, 23, 26)"


def test_pointer_shows_what_a_box_is(flame: Any) -> None:
    flame.locator("canvas").hover(position={"x": 600, "y": middle(1) + 8})
    tooltip = flame.get_by_role("tooltip").inner_text()
    assert tooltip.startswith("backward")
    assert "400 us, 40.0 % of all" in tooltip
