"""The flame graph: its boxes, zoom, search, and what the address says of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from bragg.model import Metric, MetricKind
from bragg.model.meta.gpu_memory import AT_PEAK
from tests.support.profiles import profile_from_text
from tests.support.waiting import address, beginning, expect, expect_address, expect_value

ROW_PX = 20
KERNEL, PYTHON, SCOPE, MATCH = "rgb(240, 178, 124)", "rgb(168, 203, 234)", "rgb(200, 188, 232)", "rgb(176, 19, 108)"
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


def detail(page: Any) -> Any:
    return page.locator(".flame .detail")


def note(page: Any) -> Any:
    return page.locator(".tools .note")


@pytest.fixture
def flame(pages: Any) -> Any:
    return pages.open(profile_from_text(PROFILE), "view=flame", width=1000)


def test_boxes_are_as_wide_as_their_share_and_the_largest_is_left(flame: Any, pixel: Pixel) -> None:
    # 1 ms in 1000 px: forward and backward have 400 each, the rest 200; equal ones stay in their order.
    expect_value(lambda: [pixel(flame, "canvas", x, middle(1)) for x in (200, 600, 900)], [SCOPE] * 3)
    assert pixel(flame, "canvas", 398, middle(2)) == PYTHON
    assert pixel(flame, "canvas", 200, middle(3)) == KERNEL
    assert pixel(flame, "canvas", 900, middle(3)) == "rgb(255, 255, 255)"


def test_boxes_are_as_wide_as_the_memory_that_paths_hold_at_the_peak(pages: Any, pixel: Pixel) -> None:
    profile = profile_from_text(PROFILE)
    at_peak = {"matmul": 3 << 20, "relu": 1 << 20, "train.py:12@step": 4 << 20}
    held = np.array([at_peak.get(profile.tree.label(node), 0) for node in range(len(profile.tree))])
    held_at_peak = Metric(AT_PEAK, "B", MetricKind.INCLUSIVE, held)
    profile = replace(profile, metrics={**profile.metrics, AT_PEAK: held_at_peak})
    page = pages.open(profile, f"view=flame&metric={AT_PEAK}", width=1000)
    expect(page.get_by_label("width")).to_have_value(AT_PEAK)
    # Of 1000 px forward has 727: its function holds 364 of them itself, its kernels 273 and 91.
    expect_value(lambda: [pixel(page, "canvas", x, middle(3)) for x in (100, 300, 900)], [KERNEL] * 3)
    assert pixel(page, "canvas", 500, middle(3)) == "rgb(255, 255, 255)"
    page.locator("canvas").click(position={"x": 100, "y": middle(1) + 8})
    expect(detail(page)).to_contain_text(f"{AT_PEAK} 8.39 MB, 72.7 % of all")


def test_click_zooms_and_escape_goes_back(flame: Any, pixel: Pixel) -> None:
    flame.locator("canvas").click(position={"x": 200, "y": middle(2) + 8})
    expect(detail(flame)).to_contain_text("train.py:12")
    expect_value(lambda: pixel(flame, "canvas", 990, middle(2)), PYTHON)
    expect_address(flame, "node=2")
    flame.keyboard.press("0")
    expect_value(lambda: pixel(flame, "canvas", 990, middle(2)), lambda colour: colour != PYTHON)
    expect_address(flame, lacks="node")


def test_keys_walk_along_the_boxes(flame: Any) -> None:
    steps = [
        ("ArrowDown", "forward"),
        ("ArrowRight", "backward"),
        ("ArrowRight", "other"),
        ("ArrowLeft", "backward"),
        ("ArrowDown", "[torch: engine]"),
        ("ArrowUp", "backward"),
    ]
    for key, name in steps:
        flame.keyboard.press(key)
        expect(detail(flame).locator("strong")).to_have_text(name)


def test_search_marks_matches_and_says_their_share(flame: Any, pixel: Pixel) -> None:
    flame.keyboard.press("/")
    flame.keyboard.type("matmul")
    expect(note(flame)).to_contain_text("70.0 % in 2 matches")
    expect_value(lambda: pixel(flame, "canvas", 100, middle(3)), MATCH)
    assert pixel(flame, "canvas", 350, middle(3)) != MATCH
    flame.keyboard.press("Escape")
    expect(note(flame)).to_have_text("")


def test_expressions_match_nested_boxes_once(flame: Any) -> None:
    flame.get_by_label("Search: text or /expression/").fill("/^forward$|relu/")
    expect(note(flame)).to_contain_text("40.0 % in 2 matches")


def test_bottom_up_adds_up_a_kernel_over_its_callers(flame: Any, pixel: Pixel) -> None:
    flame.get_by_role("button", name="Bottom up").click()
    expect_value(lambda: pixel(flame, "canvas", 690, middle(1)), KERNEL)
    flame.locator("canvas").click(position={"x": 300, "y": middle(1) + 8})
    expect(detail(flame)).to_contain_text("700 us, 70.0 % of all")
    expect_address(flame, "direction=up")


def test_library_frames_are_folded_and_unfolded(flame: Any) -> None:
    flame.keyboard.press("ArrowDown")
    flame.keyboard.press("ArrowRight")
    flame.keyboard.press("ArrowDown")
    expect(detail(flame)).to_have_text(beginning("[torch: engine]"))
    flame.get_by_label("fold libraries").uncheck()
    expect(detail(flame)).to_have_text(beginning("engine"))
    expect_address(flame, "libraries=false")


def test_width_follows_the_side(flame: Any) -> None:
    flame.get_by_role("button", name="CPU").click()
    flame.keyboard.press("ArrowDown")
    expect(detail(flame)).to_have_text(beginning("other"))
    expect(detail(flame)).to_contain_text("9.00 ms, 100.0 % of all")


def test_forward_and_backward_have_colours(flame: Any, pixel: Pixel) -> None:
    flame.get_by_label("colour").select_option("phase")
    expect_value(
        lambda: [pixel(flame, "canvas", x, middle(3)) for x in (200, 600)], ["rgb(168, 203, 234)", "rgb(217, 168, 207)"]
    )


def test_metric_colours_the_box_with_most_of_it_the_most(flame: Any, pixel: Pixel) -> None:
    def brightness() -> list[int]:
        colours = [pixel(flame, "canvas", x, middle(3)) for x in (100, 350)]
        return [sum(map(int, colour[4:-1].split(", "))) for colour in colours]

    flame.get_by_label("colour").select_option("gpu_count")
    expect_value(brightness, lambda found: found[0] < found[1])


def test_address_opens_the_same_picture(pages: Any, flame: Any) -> None:
    flame.get_by_role("button", name="Bottom up").click()
    flame.get_by_label("Search: text or /expression/").fill("relu")
    flame.locator("canvas").click(position={"x": 300, "y": middle(1) + 8})
    expect_address(flame, "direction=up", "q=relu", "row=")
    again = pages.open(profile_from_text(PROFILE), address(flame)[1:], width=1000)
    expect(detail(again)).to_have_text(detail(flame).text_content())
    expect(again.get_by_label("Search: text or /expression/")).to_have_value("relu")


def test_node_that_another_view_chose_is_seen_although_the_picture_was_zoomed(flame: Any) -> None:
    flame.locator("canvas").click(position={"x": 200, "y": middle(2) + 8})
    flame.keyboard.press("4")
    flame.locator("td.name", has_text="copy").click()
    flame.get_by_role("link", name="Summary").click()
    flame.get_by_role("link", name="copy").click()
    expect(detail(flame)).to_have_text(beginning("copy"))
    expect_address(flame, "node=", lacks="zoom=0")


def test_kernel_is_found_in_the_table(flame: Any) -> None:
    flame.locator("canvas").click(position={"x": 350, "y": middle(3) + 8})
    flame.locator(".detail .links").get_by_role("button", name="Kernels").click()
    expect(flame.locator("tr.row[aria-expanded=true] td.name")).to_have_text("relu")


def test_dark_picture_is_dark_from_the_first(pages: Any, pixel: Pixel) -> None:
    page = pages.open(profile_from_text(PROFILE), "view=flame", width=1000, theme="dark")
    expect_value(lambda: pixel(page, "canvas", 900, middle(3)), "rgb(20, 23, 26)")


def test_pointer_shows_what_a_box_is(flame: Any) -> None:
    flame.locator("canvas").hover(position={"x": 600, "y": middle(1) + 8})
    tooltip = flame.get_by_role("tooltip")
    expect(tooltip).to_have_text(beginning("backward"))
    expect(tooltip).to_contain_text("400 us, 40.0 % of all")


def test_sandwich_has_callers_above_the_chosen_name_and_callees_below(flame: Any, pixel: Pixel) -> None:
    flame.locator("canvas").click(position={"x": 350, "y": middle(3) + 8})
    chosen = detail(flame).locator("strong")
    expect(chosen).to_have_text("relu")
    flame.get_by_role("button", name="Sandwich").click()
    expect(chosen).to_have_text("relu")
    expect_address(flame, "direction=sandwich", "node=")
    # What called it is above it, and is the middle once it is chosen.
    expect_value(lambda: pixel(flame, "canvas", 200, middle(0)), SCOPE)
    flame.locator("canvas").click(position={"x": 200, "y": middle(0)})
    expect(chosen).to_have_text("forward")
    flame.get_by_role("button", name="Top down").click()
    expect_address(flame, lacks="direction")
