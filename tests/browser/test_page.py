"""The page around the views: tabs, keys, theme, addresses, several profiles, narrow windows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bragg import formats
from bragg.model import Profile
from tests.support.profiles import profile_from_text
from tests.support.whole_profiles import KERNEL, whole_profile

SAMPLE = Path(__file__).parents[2] / "src" / "bragg" / "data" / "sample-h200.bragg"
EVERY_VIEW = ["summary", "flame", "kernels", "timeline", "source", "roofline"]


@pytest.fixture(scope="session")
def sample() -> Profile:
    return formats.load(SAMPLE)


def test_summary_answers_first(pages: Any, sample: Profile) -> None:
    page = pages.open(sample)
    sentences = page.locator(".answer li").all_inner_texts()
    assert sentences[0].startswith("sm80_xmma_gemm_f32_tn_128x128x8 took 32.5 % of 87.8 ms of GPU time")
    assert sentences[1].startswith("GPU 0 idled 6.03 s, 98.6 % of the 6.11 s")
    assert sentences[2] == "Recording cost 0.3 % and lost no record."
    assert "NVIDIA H200" in page.locator(".pairs").inner_text()
    page.get_by_role("link", name="cutlass_80_simt_sgemm_128x256_8x4_nt_align1").click()
    assert "cutlass_80_simt_sgemm_128x256" in page.locator(".flame .detail strong").inner_text()


def test_number_keys_open_views(pages: Any, sample: Profile) -> None:
    page = pages.open(sample)
    page.keyboard.press("3")
    page.locator(".kernels").wait_for()
    assert page.locator("nav a[aria-current=page]").inner_text() == "Kernels"
    page.go_back()
    page.locator(".summary").wait_for()


def test_help_lists_keys_of_the_view_and_closes(pages: Any, sample: Profile) -> None:
    page = pages.open(sample, "view=flame")
    page.keyboard.press("?")
    assert "bottom up or top down" in page.get_by_role("dialog").inner_text()
    page.keyboard.press("Escape")
    page.get_by_role("dialog").wait_for(state="hidden")


def test_theme_is_that_of_the_system_until_it_is_chosen(pages: Any, sample: Profile) -> None:
    page = pages.open(sample, theme="dark")
    ground = "getComputedStyle(document.body).backgroundColor"
    assert page.evaluate(ground) == "rgb(20, 23, 26)"
    page.keyboard.press("T")
    assert page.evaluate(ground) == "rgb(255, 255, 255)"


def test_view_keeps_what_it_showed_while_another_is_open(pages: Any, sample: Profile) -> None:
    page = pages.open(sample, "view=kernels")
    page.get_by_label("Filter: text or /expression/").fill("gemm")
    page.get_by_role("link", name="Summary").click()
    page.locator(".summary").wait_for()
    page.get_by_role("link", name="Kernels").click()
    assert page.get_by_label("Filter: text or /expression/").input_value() == "gemm"


def test_kernel_that_is_chosen_is_chosen_in_every_view(pages: Any) -> None:
    page = pages.open(whole_profile(), "view=flame&node=2")
    assert page.locator(".flame .detail strong").inner_text() == KERNEL
    links = page.locator(".flame .links button").all_inner_texts()
    assert links == ["Kernels", "Timeline", "Source", "Roofline"]
    for view, shown in (
        ("Kernels", "tr[aria-expanded=true] td.name"),
        ("Timeline", "main"),
        ("Source", "main"),
        ("Roofline", "main"),
    ):
        page.get_by_role("link", name=view).click()
        page.locator(shown).filter(has_text=KERNEL).wait_for()


def test_address_of_something_else_opens_the_usual(pages: Any, sample: Profile) -> None:
    page = pages.open(sample, "view=nothing&profile=7&node=99999999")
    assert page.locator(".summary").is_visible()
    page = pages.open(sample, "view=flame&node=99999999&metric=nothing&zoom=-4&colour=no")
    assert page.locator(".flame .detail strong").inner_text() == "total"


def test_several_profiles_are_chosen_from_a_list(pages: Any) -> None:
    one, other = profile_from_text("root\n  first 1us"), profile_from_text("root\n  second 2us")
    page = pages.open(pages.write(one, other))
    assert "first took 100.0 %" in page.locator(".answer").inner_text()
    page.get_by_label("Profile").select_option("1")
    page.get_by_text("second took 100.0 %").wait_for()
    assert "profile=1" in page.evaluate("location.hash")


@pytest.mark.parametrize("view", EVERY_VIEW)
def test_phone_needs_no_sideways_scrolling(pages: Any, view: str) -> None:
    page = pages.open(whole_profile(), f"view={view}", width=390, height=844)
    assert page.locator("main .lack").count() == 0
    assert page.evaluate("document.documentElement.scrollWidth") == 390


@pytest.mark.parametrize("view", EVERY_VIEW)
def test_nothing_moves_after_it_was_drawn(pages: Any, view: str) -> None:
    page = pages.open(whole_profile(), f"view={view}")
    shifted = page.evaluate(
        """async () => {
            let shifted = 0;
            new PerformanceObserver((list) => {
                for (const entry of list.getEntries()) shifted += entry.value;
            }).observe({type: "layout-shift", buffered: true});
            await new Promise((done) => setTimeout(done, 100));
            return shifted;
        }"""
    )
    assert shifted < 0.02
