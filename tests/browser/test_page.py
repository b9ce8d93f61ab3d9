"""The page around the views: tabs, keys, theme, addresses, several profiles, narrow windows."""

from __future__ import annotations

from typing import Any

import pytest

from bragg.data.sample import sample as packed_sample
from bragg.model import Profile
from tests.support.profiles import profile_from_text
from tests.support.waiting import beginning, expect, expect_address
from tests.support.whole_profiles import KERNEL, whole_profile

EVERY_VIEW = ["summary", "findings", "flame", "kernels", "timeline", "source", "roofline"]


@pytest.fixture(scope="session")
def sample() -> Profile:
    return packed_sample()


def test_summary_answers_first(pages: Any, sample: Profile) -> None:
    page = pages.open(sample)
    expect(page.locator(".answer li")).to_have_text(
        [
            beginning("The steady state is 0.7 % of the run; of the rest imports took 12.6 s (train_gpt2.py:16)."),
            beginning("sm80_xmma_gemm_f32_tn_128x128x8 took 23.7 % of 64.1 ms of GPU time in the steady state"),
            beginning("A steady step: data 7.1 %, forward 28.1 %"),
            beginning("GPU 0 idled 36.4 ms, 36.2 % of the steady state"),
            beginning("The host was 20.2 % of the steady state in cuLaunchKernel"),
            beginning("The recording is complete"),
        ]
    )
    headline = "The GPU bounds most of the program: in 6 steps of 16.8 ms, the GPU works 64 %"
    expect(page.locator(".headline")).to_have_text(beginning(headline))
    expect(page.locator(".pairs")).to_contain_text("NVIDIA H100")
    page.get_by_role("link", name="cutlass_80_simt_sgemm_128x256_8x4_nt_align1").click()
    expect(page.locator(".flame .detail strong")).to_contain_text("cutlass_80_simt_sgemm_128x256")


def test_number_keys_open_views(pages: Any, sample: Profile) -> None:
    page = pages.open(sample)
    page.keyboard.press("4")
    page.locator(".kernels").wait_for()
    expect(page.locator("nav a[aria-current=page]")).to_have_text("Kernels")
    page.go_back()
    page.locator(".summary").wait_for()


def test_help_lists_keys_of_the_view_and_closes(pages: Any, sample: Profile) -> None:
    page = pages.open(sample, "view=flame")
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_contain_text("bottom up or top down")
    page.keyboard.press("Escape")
    page.get_by_role("dialog").wait_for(state="hidden")


def test_theme_is_that_of_the_system_until_it_is_chosen(pages: Any, sample: Profile) -> None:
    page = pages.open(sample, theme="dark")
    expect(page.locator("body")).to_have_css("background-color", "rgb(20, 23, 26)")
    page.keyboard.press("T")
    expect(page.locator("body")).to_have_css("background-color", "rgb(255, 255, 255)")


def test_view_keeps_what_it_showed_while_another_is_open(pages: Any, sample: Profile) -> None:
    page = pages.open(sample, "view=kernels")
    page.get_by_label("Filter: text or /expression/").fill("gemm")
    page.get_by_role("link", name="Summary").click()
    page.locator(".summary").wait_for()
    page.get_by_role("link", name="Kernels").click()
    expect(page.get_by_label("Filter: text or /expression/")).to_have_value("gemm")


def test_kernel_that_is_chosen_is_chosen_in_every_view(pages: Any) -> None:
    page = pages.open(whole_profile(), "view=flame&node=2")
    expect(page.locator(".flame .detail strong")).to_have_text(KERNEL)
    expect(page.locator(".flame .links button")).to_have_text(["Kernels", "Timeline", "Source", "Roofline"])
    for view, shown in (
        ("kernels", "tr[aria-expanded=true] + tr.more"),
        ("timeline", ".timeline-slice h2"),
        ("source", "option:checked"),
        ("roofline", "li.chosen .name"),
    ):
        page.get_by_role("link", name=view).click()
        expect(page.locator(f"main[data-view={view}] {shown}")).to_contain_text(KERNEL)


def test_address_of_something_else_opens_the_usual(pages: Any, sample: Profile) -> None:
    page = pages.open(sample, "view=nothing&profile=7&node=99999999")
    expect(page.locator(".summary")).to_be_visible()
    page = pages.open(sample, "view=flame&node=99999999&metric=nothing&zoom=-4&colour=no")
    expect(page.locator(".flame .detail strong")).to_have_text("total")


def test_several_profiles_are_chosen_from_a_list(pages: Any) -> None:
    one, other = profile_from_text("root\n  first 1us"), profile_from_text("root\n  second 2us")
    page = pages.open(pages.write(one, other))
    expect(page.locator(".answer")).to_contain_text("first took 100.0 %")
    page.get_by_label("Profile").select_option("1")
    expect(page.locator(".answer")).to_contain_text("second took 100.0 %")
    expect_address(page, "profile=1")


@pytest.mark.parametrize("view", EVERY_VIEW)
def test_phone_needs_no_sideways_scrolling(pages: Any, view: str) -> None:
    page = pages.open(whole_profile(), f"view={view}", width=390, height=844)
    expect(page.locator("main .lack")).to_have_count(0)
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
            // What comes last are the totals of the timeline, 180 ms after it was drawn.
            await new Promise((done) => setTimeout(done, 300));
            return shifted;
        }"""
    )
    assert shifted < 0.02


# In one task: the page hears of a new address in a later one.
_PRESS = """(keys) => {
    for (const key of keys)
        for (const kind of ["keydown", "keyup"]) document.dispatchEvent(new KeyboardEvent(kind, {key}));
}"""


def test_a_view_that_is_left_does_not_take_the_address_back(pages: Any, sample: Profile) -> None:
    page = pages.open(sample, "view=flame")
    page.evaluate(_PRESS, ["1", "ArrowDown"])
    expect(page.locator("main")).to_have_attribute("data-view", "summary")
    page.go_back()
    expect(page.locator("main")).to_have_attribute("data-view", "flame")


@pytest.mark.parametrize("key", ["?", "T", "1"])
def test_a_zoom_that_the_address_does_not_tell_yet_is_kept(pages: Any, key: str) -> None:
    page = pages.open(whole_profile(), "view=timeline")
    page.evaluate(_PRESS, ["w", key])
    if key == "1":
        expect(page.locator("main")).to_have_attribute("data-view", "summary")
        page.get_by_role("link", name="Timeline").click()
    expect_address(page, "view=timeline", "span=")
