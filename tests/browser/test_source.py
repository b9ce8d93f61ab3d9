"""The code of kernels: which lines belong together, where samples are, and what the address says of it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bragg.code.sass.listing import Instruction
from bragg.code.source_map import Stage, source_name
from bragg.model import Profile
from tests.support.sampled_kernels import CODE, FILE, KEY, LOAD, STORE, sampled_profile
from tests.support.waiting import beginning, expect, expect_address

TTGIR = f"""\
#loc = loc("{FILE}":7:0)
%0 = tt.load %x loc("{FILE}":8:5)
%1 = "tt.reduce"(%0) loc("{FILE}":9:5)
tt.store %out, %1 loc("{FILE}":10:5)
"""
PTX = f"""\
.file 1 "{FILE}"
ld.global.b32 %r1, [%rd1];
.loc 1 9 5
max.f32 %r1, %r1, %r3;
.loc 1 10 5
st.global.b32 [%rd4], %r1;
"""
MANY_INSTRUCTIONS = 20_000


def profile(**options: Any) -> Profile:
    found = sampled_profile(**options)
    texts = {source_name(KEY, Stage.TTGIR): TTGIR, source_name(KEY, Stage.PTX): PTX}
    return replace(found, sources={**found.sources, **texts})


def line(page: Any, stage: str, text: str) -> Any:
    return page.locator(f"[data-stage={stage}] .code-line", has_text=text).first


def number(page: Any, stage: str, text: str) -> Any:
    """The number of a line: it stays in sight however long the line is."""
    return line(page, stage, text).locator("b")


def linked(page: Any, stage: str) -> Any:
    return page.locator(f"[data-stage={stage}] .linked code")


def status(page: Any) -> Any:
    return page.locator(".code-status")


@pytest.fixture
def source(pages: Any) -> Any:
    return pages.open(profile(), "view=source&panes=python,ttgir,ptx,sass", width=1600)


def test_a_line_of_python_lights_what_it_became(source: Any) -> None:
    number(source, "python", "tl.load").hover()
    expect(linked(source, "sass")).to_have_text(["LDG.E R1, [R2] ;"])
    expect(linked(source, "ttgir")).to_have_text(["%0 = tt.load %x"])
    number(source, "python", "scale(values)").hover()
    expect(linked(source, "sass")).to_have_text(["FMNMX R1, R1, R3 ;"])


def test_an_instruction_lights_the_line_it_comes_from_and_the_one_that_called_it(source: Any) -> None:
    number(source, "sass", "FMNMX").hover()
    expect(linked(source, "python")).to_have_text(["values = scale(values)", "return values - tl.max(values)"])
    expect(linked(source, "ptx")).to_have_text(["max.f32 %r1, %r1, %r3;"])


def test_a_click_keeps_the_line_and_the_address_names_it(source: Any) -> None:
    number(source, "sass", "STG").click()
    source.mouse.move(5, 5)
    expect(linked(source, "python")).to_have_text(["tl.store(out, values)"])
    expect_address(source, "line=sass:2")
    expect(status(source)).to_contain_text("lines: Python 1, TTGIR 1, PTX 1")
    source.keyboard.press("Escape")
    expect(linked(source, "python")).to_have_count(0)


def test_samples_and_their_reasons_stand_at_lines(source: Any) -> None:
    heat = line(source, "python", "tl.load").locator(".heat")
    expect(heat).to_have_text("60.0 %")
    heat.hover()
    for text in ("60 samples", "91.7 % long_scoreboard", "memory: data of global or local memory"):
        expect(source.get_by_role("tooltip")).to_contain_text(text)
    widths = source.locator("[data-stage=sass] .heat").evaluate_all(
        "cells => cells.map(cell => cell.style.getPropertyValue('--share'))"
    )
    assert [round(float(width.rstrip("%"))) for width in widths] == [100, 50, 17]


def test_without_samples_the_mapping_is_shown_and_how_to_get_samples(pages: Any) -> None:
    page = pages.open(profile(samples=False), "view=source")
    expect(page.locator(".has-heat")).to_have_count(0)
    expect(status(page)).to_contain_text("bragg run --sample")
    number(page, "python", "tl.store").hover()
    expect(linked(page, "sass")).to_have_text(["STG.E [R4], R1 ;"])


def test_what_a_kernel_lacks_is_said(pages: Any) -> None:
    found = profile(samples=False)
    page = pages.open(
        replace(found, meta={**found.meta, "kernel_code": {KEY: "nvdisasm was not found"}}), "view=source"
    )
    expect(status(page)).to_contain_text("Missing: nvdisasm was not found.")


def test_without_texts_samples_stand_at_the_lines_of_python(pages: Any) -> None:
    page = pages.open(sampled_profile(code=False), "view=source")
    heat = page.locator("[data-stage=python] .code-line .heat:not(:empty)")
    expect(heat).to_have_text(["30.0 %", "60.0 %", "30.0 %", "10.0 %"])
    expect(page.get_by_role("button", name="SASS")).to_be_disabled()


def test_keys_walk_the_lines_and_follow_them(source: Any) -> None:
    source.keyboard.press("h")
    expect(linked(source, "python")).to_have_text(["values = tl.load(x)"])
    source.keyboard.press("Tab")
    chosen = source.locator("[data-stage=ttgir] .own code")
    expect(chosen).to_have_text(beginning("%0 = tt.load"))
    source.keyboard.press("j")
    expect(chosen).to_have_text(beginning('%1 = "tt.reduce"'))
    source.keyboard.press("]")
    expect_address(source, "kernel=softmax<BLOCK=64")


def test_panes_come_and_go(source: Any) -> None:
    source.get_by_role("button", name="PTX").click()
    expect(source.locator(".code-pane")).to_have_count(3)
    expect_address(source, "panes=python,ttgir,sass")
    expect(source.get_by_role("button", name="TTIR")).to_be_disabled()


def test_an_address_opens_the_kernel_of_a_node(pages: Any) -> None:
    page = pages.open(profile(), "view=source&node=3")
    expect(page.get_by_label("Kernel or file", exact=True).locator("option:checked")).to_have_text(
        beginning("softmax<BLOCK=1024")
    )
    page = pages.open(profile(), "view=source&line=sass:1&panes=sass,python")
    expect(linked(page, "python")).to_have_text(["values = scale(values)", "return values - tl.max(values)"])
    page = pages.open(profile(), "view=source&kernel=nonsense&line=sass:99&panes=x")
    expect(page.locator(".code-line.own")).to_have_count(0)


def test_long_code_has_only_the_lines_that_are_seen_and_brings_others_into_view(pages: Any) -> None:
    place = {0: LOAD, MANY_INSTRUCTIONS - 5: STORE}
    code = [
        Instruction(16 * row, f"NOP {row} ;", (place[row],) if row in place else (), 0)
        for row in range(MANY_INSTRUCTIONS)
    ]
    page = pages.open(profile(instructions=code, samples=False), "view=source&panes=python,sass")
    expect(page.locator("[data-stage=sass] .code-line").first).to_be_visible()
    assert page.locator("[data-stage=sass] .code-line").count() < 150
    number(page, "python", "tl.store").hover()
    expect(linked(page, "sass")).to_have_text([f"NOP {MANY_INSTRUCTIONS - 5} ;"])
    number(page, "python", "tl.load").click()
    expect(linked(page, "sass")).to_have_text(["NOP 0 ;"])


def test_code_is_text_whatever_it_holds(pages: Any) -> None:
    code = [CODE[0]._replace(text="<img src=x onerror=alert(1)> \u202e\u0000"), *CODE[1:]]
    page = pages.open(profile(instructions=code), "view=source")
    shown = line(page, "sass", "<img").inner_text()
    assert "<img src=x onerror=alert(1)>" in shown
    assert not {"\u202e", "\u0000"} & set(shown)
    expect(page.locator("img")).to_have_count(0)


def test_without_code_the_way_to_it_is_said(pages: Any) -> None:
    page = pages.open(sampled_profile(code=False, samples=False), "view=source")
    expect(page.locator("main")).to_contain_text("no code of kernels")


def test_on_a_phone_panes_stand_below_each_other(pages: Any) -> None:
    page = pages.open(profile(), "view=source", width=390, height=844)
    tops = [page.locator(f"[data-stage={stage}]").bounding_box()["y"] for stage in ("python", "sass")]
    assert tops[1] > tops[0] + 100
    assert page.evaluate("document.documentElement.scrollWidth") == 390


def test_a_kernel_that_triton_compiled_is_linked_through_all_texts(
    pages: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    pytest.importorskip("triton")
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))  # another checkout's kernels name its files
    monkeypatch.setenv("TRITON_DEFAULT_FP_FUSION", "1")  # Triton 3.9 warns where it is not set
    from tests.support.compiled_kernels import compiled_profile

    page = pages.open(compiled_profile(), "view=source&panes=python,ttir,ttgir,ptx,sass", width=1900)
    number(page, "python", "tl.dot(left, right, total)").click()
    expect(linked(page, "ttir").filter(has_text="tt.dot")).not_to_have_count(0)
    expect(linked(page, "ttgir").filter(has_text="dot")).not_to_have_count(0)
    expect(linked(page, "ptx").filter(has_text="mma")).not_to_have_count(0)
    expect(linked(page, "sass").filter(has_text="MMA")).not_to_have_count(0)
    number(page, "ttir", "tt.dot").hover()
    expect(linked(page, "python")).to_have_text(["total = tl.dot(left, right, total)"])


def test_places_of_ttgir_are_hidden_until_they_are_asked_for(pages: Any) -> None:
    page = pages.open(profile(), "view=source&panes=python,ttgir")
    lines = page.locator("[data-stage=ttgir] .code-line code")
    expect(lines).to_have_text(["%0 = tt.load %x", '%1 = "tt.reduce"(%0)', "tt.store %out, %1"])
    page.get_by_label("locations").check()
    expect(lines).to_have_count(4)
    expect_address(page, "locations=1")
