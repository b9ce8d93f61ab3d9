"""A profile in a notebook, without a network: the frame that shows it, and the widget's side of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bragg import notebook
from bragg.notebook.frame import page_of
from tests.support.profiles import profile_from_text
from tests.support.waiting import expect, expect_value

PROFILE = profile_from_text("root\n  forward\n    matmul 12us x3\n    relu 4us")
# What anywidget hands to a widget, kept in the page.
HOST = """<div id="here"></div><script type="module">
{script}
const traits = {{ page: {page}, place: {place} }};
const listeners = [];
window.traits = traits;
window.choose = (place) => {{ traits.place = place; for (const listener of listeners) listener(); }};
widget.render({{
  el: document.getElementById("here"),
  model: {{
    get: (name) => traits[name],
    set: (name, value) => {{ traits[name] = value; }},
    save_changes: () => {{}},
    on: (name, listener) => listeners.push(listener),
    off: () => {{}},
  }},
}});
</script>"""


def opened(pages: Any, folder: Path, body: str) -> Any:
    file = folder / "notebook.html"
    file.write_text(f"<!doctype html><meta charset=utf-8><link rel=icon href=data:,><body>{body}", encoding="utf-8")
    page = pages.blank(("file:", "about:", "data:", "blob:"))
    page.goto(f"file://{file}")
    return page


def test_frame_shows_the_profile_and_its_views_can_be_chosen(pages: Any, tmp_path: Path) -> None:
    page = opened(pages, tmp_path, PROFILE._repr_html_())
    frame = page.frame_locator("iframe")
    frame.get_by_text("matmul").first.wait_for()
    frame.get_by_role("link", name="Kernels").click()
    expect(frame.locator("main[data-view=kernels] td.name").first).to_have_text("matmul")
    frame.get_by_role("button", name="name").first.click()
    expect(frame.locator("th[aria-sort=ascending]")).to_have_text("name")


def test_widget_hears_what_is_chosen_and_shows_what_python_chooses(pages: Any, tmp_path: Path) -> None:
    import json

    script = (Path(notebook.__file__).parent / "widget.js").read_text().replace("export default", "const widget =")
    text = json.dumps(page_of(PROFILE)).replace("</", "<\\/").replace("<!--", "<\\!--")
    page = opened(pages, tmp_path, HOST.format(script=script, page=text, place=json.dumps("view=kernels")))
    frame = page.frame_locator("iframe")
    frame.locator("td.name").first.wait_for()
    frame.get_by_role("link", name="Flame").click()
    expect_value(lambda: page.evaluate("traits.place"), "view=flame")
    page.evaluate("choose('view=flame&node=2')")
    expect(frame.locator(".flame .detail strong")).to_have_text("matmul")
    frame.locator(".flame .scroll").press("ArrowRight")
    expect(frame.locator(".flame .detail strong")).to_have_text("relu")
    expect_value(lambda: page.evaluate("traits.place"), "view=flame&node=3")


@pytest.mark.parametrize("place", ["view=nothing", "node=x", "%%%"])
def test_strange_places_are_the_usual_one(place: str, pages: Any, tmp_path: Path) -> None:
    page = opened(pages, tmp_path, PROFILE._repr_html_())
    frame = page.frame_locator("iframe")
    frame.get_by_role("link", name="Flame").click()
    expect(frame.locator("main")).to_have_attribute("data-view", "flame")
    page.evaluate("(place) => frames[0].postMessage({ bragg: place }, '*')", place)
    expect(frame.locator("main")).to_have_attribute("data-view", "summary")
