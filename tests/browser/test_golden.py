"""Reports of real programs: what the page counts of a range that the reader chooses is what Python counts of it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from bragg import formats
from bragg.analyze.idle import idle_times
from bragg.analyze.wall.parts import wall_parts
from bragg.model import FrameKind
from bragg.views.web.payload import timeline_zero_ns
from tests.support.recordings import RECORDINGS, SAMPLE
from tests.support.waiting import expect, expect_address


@pytest.mark.parametrize("path", [*RECORDINGS, SAMPLE], ids=lambda path: path.stem)
def test_idle_time_of_a_range_is_that_of_the_analysis(pages: Any, path: Path) -> None:
    profile = formats.load(path)
    parts = wall_parts(profile)
    assert parts is not None
    assert parts.steady is not None
    zero_ns = timeline_zero_ns(profile)
    begins, ends = parts.steady.begins_ns - zero_ns, parts.steady.ends_ns - zero_ns
    (idle,) = idle_times(profile, parts.steady)
    page = pages.open(profile, f"view=timeline&range={begins}~{ends}")
    totals = page.locator(".timeline-totals")
    expect(totals).to_contain_text("Range: ")
    shown = re.search(r"GPU 0 idle ([\d.]+) %", totals.inner_text())
    assert shown is not None
    # The range is in whole nanoseconds, and the share has one digit.
    assert float(shown[1]) / 100 == pytest.approx(idle.share, abs=0.0006)


def test_the_page_opens_with_what_the_view_opens_with(pages: Any) -> None:
    profile = formats.load(next(path for path in RECORDINGS if "trainer" in path.stem))
    page = pages.open(profile, "view=flame")
    expect(page.locator(".flame .detail")).to_contain_text("host_time 1.60 s")
    page.get_by_role("button", name="Whole run").click()
    page.get_by_role("button", name="GPU", exact=True).click()
    expect(page.locator(".flame .detail")).to_contain_text("gpu_time 191 ms")
    expect_address(page, "part=all")
    page = pages.open(profile, "view=timeline")
    expect(page.locator(".timeline-totals")).to_contain_text("In view: 1.64 s")
    page.get_by_role("button", name="All", exact=True).click()
    expect(page.locator(".timeline-totals")).to_contain_text("In view: 21.0 s")


def test_a_kernel_of_a_host_bound_run_is_shown_by_gpu_time(pages: Any) -> None:
    profile = formats.load(next(path for path in RECORDINGS if "trainer" in path.stem))
    kernel = next(node for node in range(len(profile.tree)) if profile.tree.kind[node] == FrameKind.KERNEL)
    page = pages.open(profile, f"view=flame&node={kernel}")
    expect(page.locator(".flame .detail")).to_contain_text("gpu_time ")
    expect(page.locator(".flame .detail strong")).to_have_text(profile.tree.label(kernel))
