"""The code of kernels: which lines belong together, where samples are, and what the address says of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from bragg.model import Profile
from bragg.model.sass_listing import Instruction
from bragg.model.source_map import Stage, source_name
from tests.support.sampled_kernels import CODE, FILE, KEY, LOAD, STORE, sampled_profile

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
DWELL_MS = 400
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


def linked(page: Any, stage: str) -> list[str]:
    return [text.strip() for text in page.locator(f"[data-stage={stage}] .linked code").all_inner_texts()]


def state(page: Any) -> str:
    return str(page.evaluate("decodeURIComponent(location.hash)"))


@pytest.fixture
def source(pages: Any) -> Any:
    return pages.open(profile(), "view=source&panes=python,ttgir,ptx,sass", width=1600)


def test_a_line_of_python_lights_what_it_became(source: Any) -> None:
    number(source, "python", "tl.load").hover()
    assert linked(source, "sass") == ["LDG.E R1, [R2] ;"]
    assert linked(source, "ttgir") == [f'%0 = tt.load %x loc("{FILE}":8:5)']
    number(source, "python", "scale(values)").hover()
    assert linked(source, "sass") == ["FMNMX R1, R1, R3 ;"]


def test_an_instruction_lights_the_line_it_comes_from_and_the_one_that_called_it(source: Any) -> None:
    number(source, "sass", "FMNMX").hover()
    assert linked(source, "python") == ["values = scale(values)", "return values - tl.max(values)"]
    assert linked(source, "ptx") == ["max.f32 %r1, %r1, %r3;"]


def test_a_click_keeps_the_line_and_the_address_names_it(source: Any) -> None:
    number(source, "sass", "STG").click()
    source.mouse.move(5, 5)
    assert linked(source, "python") == ["tl.store(out, values)"]
    assert "line=sass:2" in state(source)
    assert "lines: Python 1, TTGIR 1, PTX 1" in source.locator(".code-status").inner_text()
    source.keyboard.press("Escape")
    assert linked(source, "python") == []


def test_samples_and_their_reasons_stand_at_lines(source: Any) -> None:
    heat = line(source, "python", "tl.load").locator(".heat")
    assert heat.inner_text() == "60.0 %"
    heat.hover()
    shown = source.get_by_role("tooltip").inner_text()
    assert "60 samples" in shown
    assert "91.7 % long_scoreboard" in shown
    assert "memory: data of global or local memory" in shown
    widths = source.locator("[data-stage=sass] .heat").evaluate_all(
        "cells => cells.map(cell => cell.style.getPropertyValue('--share'))"
    )
    assert [round(float(width.rstrip("%"))) for width in widths] == [100, 50, 17]


def test_without_samples_the_mapping_is_shown_and_how_to_get_samples(pages: Any) -> None:
    page = pages.open(profile(samples=False), "view=source")
    assert page.locator(".has-heat").count() == 0
    assert "bragg run --sample" in page.locator(".code-status").inner_text()
    number(page, "python", "tl.store").hover()
    assert linked(page, "sass") == ["STG.E [R4], R1 ;"]


def test_what_a_kernel_lacks_is_said(pages: Any) -> None:
    found = profile(samples=False)
    page = pages.open(
        replace(found, meta={**found.meta, "kernel_code": {KEY: "nvdisasm was not found"}}), "view=source"
    )
    assert "Missing: nvdisasm was not found." in page.locator(".code-status").inner_text()


def test_without_texts_samples_stand_at_the_lines_of_python(pages: Any) -> None:
    page = pages.open(sampled_profile(code=False), "view=source")
    heat = page.locator("[data-stage=python] .code-line .heat").all_inner_texts()
    assert [text for text in heat if text] == ["30.0 %", "60.0 %", "30.0 %", "10.0 %"]
    assert page.get_by_role("button", name="SASS").is_disabled()


def test_keys_walk_the_lines_and_follow_them(source: Any) -> None:
    source.keyboard.press("h")
    assert linked(source, "python") == ["values = tl.load(x)"]
    source.keyboard.press("Tab")
    assert source.locator("[data-stage=ttgir] .own code").inner_text().startswith("%0 = tt.load")
    source.keyboard.press("j")
    assert source.locator("[data-stage=ttgir] .own code").inner_text().startswith('%1 = "tt.reduce"')
    source.keyboard.press("]")
    assert "kernel=softmax<BLOCK=64" in state(source)


def test_panes_come_and_go(source: Any) -> None:
    source.get_by_role("button", name="PTX").click()
    assert source.locator(".code-pane").count() == 3
    assert "panes=python,ttgir,sass" in state(source)
    assert source.get_by_role("button", name="TTIR").is_disabled()


def test_an_address_opens_the_kernel_of_a_node(pages: Any) -> None:
    page = pages.open(profile(), "view=source&node=3")
    assert (
        page.get_by_label("Kernel", exact=True)
        .evaluate("choice => choice.selectedOptions[0].text")
        .startswith("softmax<BLOCK=1024")
    )
    page = pages.open(profile(), "view=source&line=sass:1&panes=sass,python")
    assert linked(page, "python") == ["values = scale(values)", "return values - tl.max(values)"]
    page = pages.open(profile(), "view=source&kernel=nonsense&line=sass:99&panes=x")
    assert page.locator(".code-line.own").count() == 0


def test_long_code_has_only_the_lines_that_are_seen_and_brings_others_into_view(pages: Any) -> None:
    place = {0: LOAD, MANY_INSTRUCTIONS - 5: STORE}
    code = [
        Instruction(16 * row, f"NOP {row} ;", (place[row],) if row in place else (), 0)
        for row in range(MANY_INSTRUCTIONS)
    ]
    page = pages.open(profile(instructions=code, samples=False), "view=source&panes=python,sass")
    assert page.locator("[data-stage=sass] .code-line").count() < 150
    number(page, "python", "tl.store").hover()
    page.wait_for_timeout(DWELL_MS)
    assert linked(page, "sass") == [f"NOP {MANY_INSTRUCTIONS - 5} ;"]
    number(page, "python", "tl.load").click()
    assert linked(page, "sass") == ["NOP 0 ;"]


def test_code_is_text_whatever_it_holds(pages: Any) -> None:
    code = [CODE[0]._replace(text="<img src=x onerror=alert(1)> \u202e\u0000"), *CODE[1:]]
    page = pages.open(profile(instructions=code), "view=source")
    shown = line(page, "sass", "<img").inner_text()
    assert "<img src=x onerror=alert(1)>" in shown
    assert not {"\u202e", "\u0000"} & set(shown)
    assert page.locator("img").count() == 0


def test_without_code_the_way_to_it_is_said(pages: Any) -> None:
    page = pages.open(sampled_profile(code=False, samples=False), "view=source")
    assert "no code of kernels" in page.locator("main").inner_text()


def test_on_a_phone_panes_stand_below_each_other(pages: Any) -> None:
    page = pages.open(profile(), "view=source", width=390, height=844)
    tops = [page.locator(f"[data-stage={stage}]").bounding_box()["y"] for stage in ("python", "sass")]
    assert tops[1] > tops[0] + 100
    assert page.evaluate("document.documentElement.scrollWidth") == 390


def test_a_kernel_that_triton_compiled_is_linked_through_all_texts(pages: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("triton")
    monkeypatch.setenv("TRITON_DEFAULT_FP_FUSION", "1")  # Triton 3.9 warns where it is not set
    from tests.support.compiled_kernels import compiled_profile

    page = pages.open(compiled_profile(), "view=source&panes=python,ttir,ttgir,ptx,sass", width=1900)
    number(page, "python", "tl.dot(left, right, total)").click()
    assert any("tt.dot" in text for text in linked(page, "ttir"))
    assert any("dot" in text for text in linked(page, "ttgir"))
    assert any("mma" in text for text in linked(page, "ptx"))
    assert any("MMA" in text for text in linked(page, "sass"))
    number(page, "ttir", "tt.dot").hover()
    assert linked(page, "python") == ["total = tl.dot(left, right, total)"]
