"""The speedscope export, opened by speedscope itself and written again by it."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from bragg import formats
from bragg.model import Profile
from tests.support.browser import browser_page, server
from tests.support.profiles import profile_from_text
from tests.support.traces import trace_from_text

pytestmark = pytest.mark.consumer

# Where `npm install --prefix` put the packages that open exports.
CONSUMERS = Path(os.environ.get("BRAGG_CONSUMERS_DIR", "build/consumers"))
SPEEDSCOPE = CONSUMERS / "node_modules" / "speedscope" / "dist" / "release"


def open_and_save(profile: Profile, folder: Path) -> dict[str, Any]:
    """What speedscope exports of what it imported."""
    if not SPEEDSCOPE.is_dir():
        pytest.skip("speedscope is not installed")
    for file in SPEEDSCOPE.iterdir():
        (folder / file.name).symlink_to(file.resolve())
    formats.export(profile, "speedscope", folder / "profile.json")
    with server(folder) as address, browser_page(address) as page:
        page.goto(f"{address}/index.html#profileURL=profile.json")
        with page.expect_download() as download:
            page.get_by_text("Export").click()
        saved: dict[str, Any] = json.loads(Path(download.value.path()).read_text())
    return saved


def spans(saved: dict[str, Any], name: str) -> list[tuple[str, int, int]]:
    """(frame, start, end) of all that is drawn in one profile, outer before inner."""
    names = [frame["name"] for frame in saved["shared"]["frames"]]
    (profile,) = [profile for profile in saved["profiles"] if profile["name"] == name]
    open_spans: list[int] = []
    found: list[tuple[str, int, int]] = []
    for event in profile["events"]:
        if event["type"] == "O":
            open_spans.append(len(found))
            found.append((names[event["frame"]], event["at"], -1))
        else:
            row = open_spans.pop()
            found[row] = (*found[row][:2], event["at"])
    return found


def test_speedscope_draws_the_tree_with_the_heaviest_sibling_first(tmp_path: Path) -> None:
    saved = open_and_save(profile_from_text("root\n  a\n    k 1us\n  b\n    k 5us\n    l 3us x4"), tmp_path)
    assert [(profile["name"], profile["unit"]) for profile in saved["profiles"]] == [
        ("gpu_time", "nanoseconds"),
        ("gpu_count", "none"),
    ]
    assert spans(saved, "gpu_time") == [
        ("b", 0, 8000),
        ("k", 0, 5000),
        ("l", 5000, 8000),
        ("a", 8000, 9000),
        ("k", 8000, 9000),
    ]


def test_speedscope_draws_each_track_in_order_of_time(tmp_path: Path) -> None:
    profile = trace_from_text("""
        thread 7
          1000-1900 step
          1100-1150 launch
        stream 13
          1300-1500 matmul
          1600-1700 relu""")
    saved = open_and_save(profile, tmp_path)
    # Every name of this trace stands under the root of its own, so the launch interrupts the step.
    assert spans(saved, "thread 7") == [("step", 0, 100), ("launch", 100, 150), ("step", 150, 900)]
    assert spans(saved, "stream 13") == [("matmul", 0, 200), ("relu", 300, 400)]
