"""What a large report may weigh and take, however fast the machine is; benchmarks/report_page.py measures."""

from __future__ import annotations

from typing import Any

from tests.support.large_profiles import call_tree
from tests.support.waiting import expect

SIZE_LIMIT_BYTES = 1_500_000
FEW, MANY = 4_000, 40_000


def processor_s(pages: Any, n_nodes: int) -> float:
    """What the page of a call tree takes of a processor until it has been turned over and searched."""
    file = pages.write(call_tree(n_nodes), name=f"{n_nodes}.html")
    assert file.stat().st_size <= SIZE_LIMIT_BYTES
    page = pages.blank(("file:", "data:", "blob:"))
    device = page.context.new_cdp_session(page)
    device.send("Performance.enable")
    page.goto(f"file://{file.resolve()}#view=flame")
    page.get_by_role("button", name="Bottom up").click()
    page.get_by_label("Search: text or /expression/").fill("function_1")
    expect(page.locator(".tools .note")).to_contain_text("matches")
    values = {row["name"]: row["value"] for row in device.send("Performance.getMetrics")["metrics"]}
    return float(values["ThreadTime"])


def test_forty_thousand_nodes_are_small_and_take_no_more_than_their_share(pages: Any) -> None:
    # It is 2 times as much; whatever looks at all nodes for each node takes 100 times as much.
    assert processor_s(pages, MANY) <= MANY / FEW * processor_s(pages, FEW)
