"""The tab of a job's ranks in a real browser."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.straggler_jobs import JobPlan, profiles_of
from bragg.analyze.ranks.answer import compare_ranks
from bragg.analyze.ranks.summarize import summarize
from bragg.views.web.page import page as page_of
from bragg.views.web.report_payload import report_payload

if TYPE_CHECKING:
    from tests.browser.conftest import Pages


def test_a_late_rank_is_named_and_dark_from_its_first_late_step_on(pages: Pages, tmp_path: Path) -> None:
    plan = JobPlan(n_ranks=3, n_steps=12, n_layers=2, gpu=lambda rank, step: 1.6 if rank == 1 and step >= 6 else 1.0)
    profiles = profiles_of(plan)
    answer = compare_ranks([summarize(profile) for profile in profiles])
    file = tmp_path / "job.html"
    file.write_text(page_of([report_payload(profiles[1], "train.job", ranks=answer)], "train.job"), encoding="utf-8")
    page = pages.open(file, "view=ranks")
    assert page.locator(".straggler").first.inner_text().startswith("Rank 1")
    row = page.locator(".heat tbody tr").nth(1)
    assert row.locator("th.shown").inner_text() == "1"
    shades = row.locator(".cells i").evaluate_all("cells => cells.map((cell) => cell.style.background)")
    assert len(shades) == 11
    assert len(set(shades[7:])) >= 1
    assert shades[0] != shades[-1]
    assert "costs the others" in row.locator(".cells i").last.get_attribute("title")
    assert "rank 1" in page.locator(".ranks-page").inner_text().split("Critical path")[1].lower()
    assert "GB/s  24 x all-reduce of 3 ranks" in page.locator(".ranks-page").text_content()
    lanes = page.locator(".lanes tbody tr")
    titles = [lanes.nth(row).locator(".wait").first.get_attribute("title") for row in range(3)]
    assert [": waits " in title and "for rank 1, then " in title for title in titles] == [True, False, True]
    assert "comes last to all-reduce" in titles[1]
    assert "for rank 1, in all-reduce." in page.locator(".ranks-page").inner_text()
    steps = page.locator(".ranks-page .group button")
    numbers = [int(text.removeprefix("step ")) for text in steps.all_inner_texts()]
    assert len(set(numbers)) == 4
    assert min(numbers) >= 6
    assert steps.nth(0).get_attribute("aria-pressed") == "true"
    steps.nth(2).click()
    assert steps.nth(2).get_attribute("aria-pressed") == "true"
    assert page.locator(".lanes thead th").nth(1).inner_text().startswith(f"step {numbers[2]}, ")
