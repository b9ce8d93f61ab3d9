"""Names and values that programs can have and pages must survive."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bragg.model import CallTree, Combine, Finding, FrameKind, Metric, MetricKind, Profile, Severity
from bragg.views.web.page import page as page_of
from bragg.views.web.payload import pack
from tests.support.profiles import profile_from_text
from tests.support.waiting import expect, expect_address, expect_value
from tests.support.whole_profiles import whole_profile
from tests.support.work import H200

HOSTILE = {
    "markup": "<img src=x onerror=alert(1)><u>line</u>",
    "script": "</script><script>document.title='taken'</script>",
    "template": "void outer<" * 1000 + "int" + ">" * 1000,
    "right to left": "abc\u202egnp.exe\u2066",
    "nul": "before\0after\ud800",
    "quotes": "\"'`${1}\\",
}


def with_names(name: str) -> Profile:
    """A profile of which a program chose every name."""
    profile = whole_profile(kernel=name)
    tracks = profile.tracks.replace(name=[name, name])
    sources = {key: f"{text}\n# {name}" for key, text in profile.sources.items()}
    finding = Finding(name, Severity.ERROR, name, name, node=2)
    meta = {**profile.meta, "command": [name], "host": name, "devices": [{**H200, "name": name}]}
    return replace(profile, meta=meta, tracks=tracks, sources=sources, carried=[finding])


@pytest.mark.parametrize("name", HOSTILE.values(), ids=HOSTILE)
def test_names_are_text_everywhere(pages: Any, name: str) -> None:
    page = pages.open(with_names(name))
    for view in ("summary", "flame", "kernels", "timeline", "source", "roofline"):
        page.evaluate(f"location.hash = '#view={view}&node=2&q=a'")
        page.locator(f"main[data-view={view}] > *").first.wait_for()
        expect(page.locator("main .lack")).to_have_count(0)
        expect(page.locator("main img, main u, main script")).to_have_count(0)
        assert page.evaluate("document.documentElement.scrollWidth") <= 1280
    assert page.title() == "test"


def test_markup_is_shown_as_it_is(pages: Any) -> None:
    page = pages.open(with_names(HOSTILE["markup"]), "view=kernels")
    expect(page.locator("td.name").first).to_have_text(HOSTILE["markup"])


def test_characters_that_hide_or_turn_text_are_escaped(pages: Any) -> None:
    page = pages.open(with_names(HOSTILE["right to left"]), "view=kernels")
    expect(page.locator("td.name").first).to_have_text("abc\\u202egnp.exe\\u2066")


def test_damaged_page_says_that_it_cannot_be_read(pages: Any, tmp_path: Path) -> None:
    file = tmp_path / "damaged.html"
    file.write_text(page_of([pack(whole_profile())[:-200]], "damaged"))
    page = pages.blank(("file:", "data:"))
    page.goto(f"file://{file}")
    page.get_by_text("This report could not be read").wait_for()
    expect_value(lambda: page.evaluate("1") and len(pages.problems), 1)
    pages.problems.clear()


def test_profile_of_one_node_says_what_it_lacks(pages: Any) -> None:
    page = pages.open(profile_from_text("root"))
    expect(page.locator(".answer")).to_have_text("No time was recorded.")
    page.get_by_role("link", name="Flame").click()
    page.locator(".lack").filter(has_text="nothing to draw").wait_for()
    expect(page.locator(".lack .shows")).to_contain_text("The call tree")
    expect(page.locator(".lack code")).to_have_text("bragg run SCRIPT")
    expect(page.locator(".lack rect")).to_have_count(6)
    page.get_by_role("link", name="Kernels").click()
    page.locator(".lack").filter(has_text="no kernels").wait_for()


def test_nan_and_infinite_values_count_as_none(pages: Any) -> None:
    profile = profile_from_text("root\n  a 1us\n  b 3us")
    odd = Metric("odd", "1", MetricKind.INCLUSIVE, np.array([0, np.nan, np.inf]))
    least = Metric("least", "ns", MetricKind.PROPERTY, np.full(3, np.nan), Combine.MIN)
    meta = {"nan": float("nan"), "overhead": {"work_ns": float("inf")}}
    page = pages.open(
        replace(profile, metrics={**profile.metrics, "odd": odd, "least": least}, meta=meta), "view=flame"
    )
    for name in ("odd", "least"):
        page.get_by_label("colour").select_option(name)
        expect_address(page, f"colour={name}")
        expect(page.locator(".flame .detail strong")).to_have_text("total")


def test_deep_call_paths_scroll(pages: Any) -> None:
    depth = 3000
    profile = profile_from_text("root\n  leaf 1us")
    frames = profile.tree.frames
    deep = CallTree(np.arange(-1, depth, dtype=np.int32), np.minimum(np.arange(depth + 1), 1).astype(np.int32), frames)
    own = np.zeros(depth + 1, np.int64)
    own[-1] = 1000
    assert frames.kind[1] == FrameKind.KERNEL
    page = pages.open(
        replace(profile, tree=deep, metrics={"gpu_time": Metric("gpu_time", "ns", MetricKind.INCLUSIVE, own)}),
        "view=flame",
    )
    assert page.locator(".flame .scroll").evaluate("box => box.scrollHeight") >= depth * 20
    page.keyboard.press("ArrowDown")
    expect(page.locator(".flame .detail strong")).to_have_text("leaf")
