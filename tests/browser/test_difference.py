"""The page of `bragg diff --html`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from click.testing import CliRunner

from bragg import formats
from bragg.cli.verbs.diff import diff
from bragg.model import Profile
from tests.support.profiles import profile_from_text
from tests.support.waiting import beginning, expect, expect_address, expect_value

BEFORE = """root
  train.py:3@step
    forward
      matmul 300us x15
      relu 10us x2
    backward
      matmul_grad 90us x15"""
AFTER = """root
  train.py:3@step
    forward
      matmul 450us x15
      gelu 40us x4
    backward
      matmul_grad 60us x15"""


def page_of(pages: Any, folder: Path, before: Profile, after: Profile, place: str = "", **look: Any) -> Any:
    for name, profile in (("before", before), ("after", after)):
        formats.export(profile, "bragg", folder / f"{name}.bragg")
    names = [str(folder / name) for name in ("before.bragg", "after.bragg", "diff.html")]
    result = CliRunner().invoke(diff, [*names[:2], "--html", names[2]], catch_exceptions=False)
    assert "Wrote" in result.stderr
    return pages.open(folder / "diff.html", place, **look)


def opened(pages: Any, folder: Path, place: str = "", **look: Any) -> Any:
    return page_of(pages, folder, profile_from_text(BEFORE), profile_from_text(AFTER), place, **look)


def cells(page: Any, column: str) -> Any:
    return page.locator(f"td.{column}")


def test_table_has_the_largest_change_first_and_can_be_sorted(pages: Any, tmp_path: Path) -> None:
    page = opened(pages, tmp_path)
    expect(cells(page, "name")).to_have_text(["matmul", "gelu", "matmul_grad", "relu"])
    expect(cells(page, "change")).to_have_text(["+150 us", "+40.0 us", "-30.0 us", "-10.0 us"])
    expect(cells(page, "relative")).to_have_text(["+50.0 %", "new", "-33.3 %", "gone"])
    page.get_by_role("button", name="name").click()
    expect(cells(page, "name")).to_have_text(["gelu", "matmul", "matmul_grad", "relu"])
    expect_address(page, "sort=name")


def test_both_sides_have_one_scale_and_colours_of_their_change(pages: Any, tmp_path: Path, pixel: Any) -> None:
    page = opened(pages, tmp_path)
    width = page.locator("canvas").first.evaluate("canvas => canvas.clientWidth")

    def colour(side: int, share: float, y: int) -> str:
        return str(pixel(page, f"canvas >> nth={side}", int(width * share), y))

    # 400 us before, 550 us after: the bar of the whole ends at 400 / 550 of the left side, and fills the right one.
    expect_value(lambda: colour(0, 0.71, 10) != colour(0, 0.75, 10), True)
    assert colour(1, 0.98, 10) == colour(1, 0.75, 10)
    # matmul, which takes longer, is red; matmul_grad, which takes less, is blue.
    red, _, blue = channels(colour(1, 0.6, 70))
    assert red > blue + 20
    red, _, blue = channels(colour(1, 0.97, 70))
    assert blue > red + 10


def channels(colour: str) -> list[int]:
    return [int(number) for number in colour.removeprefix("rgb(").removesuffix(")").split(", ")]


def test_choosing_a_box_zooms_both_sides_and_tells_both_values(pages: Any, tmp_path: Path) -> None:
    page = opened(pages, tmp_path)
    canvas = page.locator("canvas").nth(1)
    canvas.click(position={"x": 20, "y": 70})
    detail = page.locator(".difference .detail")
    expect(detail).to_have_text("total > step > forward > matmul before 300 us, after 450 us, change +150 us (+50.0 %)")
    expect_address(page, "zoom=")
    page.keyboard.press("ArrowRight")
    expect(detail).to_contain_text("gelu before 0 ns, after 40.0 us, change +40.0 us (new)")
    page.keyboard.press("0")
    expect(detail).to_have_text(beginning("total before 400 us"))


def test_search_fades_the_rest_and_filters_the_table_and_is_in_the_address(pages: Any, tmp_path: Path) -> None:
    page = opened(pages, tmp_path, "view=difference&q=grad")
    expect(cells(page, "name")).to_have_text(["matmul_grad"])
    expect(page.locator(".note")).to_have_text("1 row, -30.0 us")


def test_summary_tells_the_change_and_hostile_names_are_text(pages: Any, tmp_path: Path) -> None:
    hostile = "<img src=x onerror=alert(1)>"
    page = page_of(
        pages, tmp_path, profile_from_text("root\n  k 1us"), profile_from_text(f"root\n  k 1us\n  {hostile} 2us")
    )
    expect(cells(page, "name")).to_have_text([hostile, "k"])
    page.get_by_role("link", name="Summary").click()
    expect(page.locator("main")).to_contain_text("gpu_time: 1.00 us before, 3.00 us after: +2.00 us (+200.0 %).")


def test_trees_deeper_than_a_canvas_can_be_are_scrolled(pages: Any, tmp_path: Path) -> None:
    def deep(leaf: str) -> Profile:
        return profile_from_text(
            "\n".join(["root", *(f"{'  ' * level}f{level}" for level in range(1, 3000)), f"{'  ' * 3000}{leaf}"])
        )

    page = page_of(pages, tmp_path, deep("leaf 5us"), deep("leaf 9us"))
    page.locator(".difference .scroll").evaluate("scroll => scroll.scrollTo(0, scroll.scrollHeight)")
    canvas = page.locator("canvas").nth(1)
    height = canvas.evaluate("canvas => canvas.clientHeight")
    canvas.click(position={"x": 20, "y": height - 10})
    expect(page.locator(".detail")).to_contain_text("f2999 > leaf before 5.00 us, after 9.00 us")
