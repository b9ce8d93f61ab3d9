"""What a large report may weigh and take: limits that a loaded machine keeps; benchmarks/report_page.py measures."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from tests.support.large_profiles import call_tree

SIZE_LIMIT_BYTES = 1_500_000
PATIENCE_S = 5


def test_forty_thousand_nodes_are_small_and_soon_there(pages: Any) -> None:
    file: Path = pages.write(call_tree(40_000))
    assert file.stat().st_size <= SIZE_LIMIT_BYTES
    start = time.perf_counter()
    page = pages.open(file, "view=flame")
    page.get_by_role("button", name="Bottom up").click()
    page.get_by_label("Search: text or /expression/").fill("function_1")
    page.locator(".tools .note").filter(has_text="matches").wait_for()
    assert time.perf_counter() - start < PATIENCE_S
