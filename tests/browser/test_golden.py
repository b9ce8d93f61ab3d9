"""Reports of real programs: what the page counts of a range that the reader chooses is what Python counts of it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from bragg import formats
from bragg.analyze.idle import idle_times
from bragg.analyze.wall.parts import wall_parts
from tests.support.recordings import RECORDINGS, SAMPLE
from tests.support.waiting import expect


@pytest.mark.parametrize("path", [*RECORDINGS, SAMPLE], ids=lambda path: path.stem)
def test_idle_time_of_a_range_is_that_of_the_analysis(pages: Any, path: Path) -> None:
    profile = formats.load(path)
    parts = wall_parts(profile)
    assert parts is not None
    assert parts.steady is not None
    first_ns = int(profile.slices.start_ns.min())
    begins, ends = parts.steady.begins_ns - first_ns, parts.steady.ends_ns - first_ns
    (idle,) = idle_times(profile, parts.steady)
    page = pages.open(profile, f"view=timeline&range={begins}~{ends}")
    totals = page.locator(".timeline-totals")
    expect(totals).to_contain_text("Range: ")
    shown = re.search(r"GPU 0 idle ([\d.]+) %", totals.inner_text())
    assert shown is not None
    # The range is in whole nanoseconds, and the share has one digit.
    assert float(shown[1]) / 100 == pytest.approx(idle.share, abs=0.0006)
