"""The pages of `bragg web`, over HTTP."""

from __future__ import annotations

import re
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from bragg import formats
from bragg.formats.captured.writer import is_being_written
from bragg.views.web.report_payload import report_payload
from bragg.views.web.server import ProfileServer
from bragg.views.web.shelf import Shelf
from tests.support.captures import small_capture
from tests.support.profiles import profile_from_text
from tests.support.traces import trace_from_text
from tests.support.waiting import expect, expect_address

BEFORE = profile_from_text("root\n  forward\n    matmul 12us x3")
AFTER = profile_from_text("root\n  forward\n    matmul 12us x3\n    softmax 8us")


@contextmanager
def serving(*paths: Path) -> Iterator[str]:
    shelf = Shelf(paths, lambda path: report_payload(formats.load(path), path.name), is_being_written)
    server = ProfileServer(shelf, "token")
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield server.address
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def opened(pages: Any, address: str, view: str = "kernels") -> Any:
    page = pages.blank((address, "data:", "blob:"))
    page.goto(f"{address}#view={view}")
    page.locator("main.view").wait_for()
    return page


def test_page_follows_its_file(pages: Any, tmp_path: Path) -> None:
    path = tmp_path / "run.bragg"
    formats.export(BEFORE, "bragg", path)
    with serving(path) as address:
        page = opened(pages, address)
        page.get_by_text("matmul").first.wait_for()
        expect(page.get_by_text("softmax")).to_have_count(0)
        address_before = page.url
        formats.export(AFTER, "bragg", path)
        page.get_by_text("softmax").first.wait_for()
        expect(page).to_have_url(address_before)


def test_file_that_is_damaged_or_gone_stays_as_it_was_and_the_page_says_so(pages: Any, tmp_path: Path) -> None:
    path = tmp_path / "run.bragg"
    formats.export(BEFORE, "bragg", path)
    with serving(path) as address:
        page = opened(pages, address)
        path.write_bytes(path.read_bytes()[:200])
        page.get_by_role("status").filter(has_text="is damaged").wait_for()
        expect(page.get_by_text("matmul").first).to_be_visible()
        path.unlink()
        page.get_by_role("status").filter(has_text="run.bragg is gone").wait_for()
        formats.export(AFTER, "bragg", path)
        page.get_by_text("softmax").first.wait_for()
        expect(page.get_by_role("status")).to_be_hidden()
        # The answer with which the server told the damage.
        pages.problems = [problem for problem in pages.problems if "503" not in problem]


def test_profile_that_is_written_later_appears_and_several_can_be_chosen(pages: Any, tmp_path: Path) -> None:
    with serving(tmp_path) as address:
        page = pages.blank((address, "data:", "blob:"))
        page.goto(f"{address}#view=kernels")
        page.get_by_role("status").filter(has_text="There is no profile yet").wait_for()
        formats.export(BEFORE, "bragg", tmp_path / "one.bragg")
        page.get_by_text("matmul").first.wait_for()
        formats.export(AFTER, "bragg", tmp_path / "two.bragg")
        page.get_by_label("Profile").select_option(label="two.bragg")
        page.get_by_text("softmax").first.wait_for()


def test_a_run_that_is_killed_turns_incomplete_in_the_open_page(pages: Any, tmp_path: Path) -> None:
    builder = small_capture()
    del builder.chunks[-1]
    path = builder.meta(statistics={}).write(tmp_path / "begun.part")
    with path.open("ab") as file, subprocess.Popen(["sleep", "1000"], stdout=file) as run:
        path = path.rename(tmp_path / f"{run.pid}.part")
        try:
            with serving(path) as address:
                page = opened(pages, address, "summary")
                page.get_by_text("The program is still running").wait_for()
                run.kill()
                page.get_by_text("The recording is incomplete").wait_for()
                expect(page.get_by_text("The program is still running")).to_have_count(0)
        finally:
            run.kill()


def test_a_new_run_is_listed_first_and_the_chosen_one_stays(pages: Any, tmp_path: Path) -> None:
    formats.export(BEFORE, "bragg", tmp_path / "one.bragg")
    with serving(tmp_path) as address:
        page = opened(pages, address, "kernels")
        page.get_by_text("matmul").first.wait_for()
        formats.export(AFTER, "bragg", tmp_path / "two.bragg")
        names = page.get_by_label("Profile").locator("option")
        expect(names).to_have_text(["two.bragg", "one.bragg"])
        expect(page.get_by_label("Profile")).to_have_value("1")
        expect(page.get_by_text("softmax")).to_have_count(0)


def test_runs_are_listed_with_command_duration_and_time(pages: Any, tmp_path: Path) -> None:
    run = {
        "command": ["/usr/bin/python3", "train.py"],
        "started_ns": 1_795_000_000 * 10**9,
        "end_ns": 1_795_000_012 * 10**9,
    }
    formats.export(BEFORE, "bragg", tmp_path / "one.bragg")
    with serving(tmp_path) as address:
        page = opened(pages, address, "kernels")
        formats.export(replace(AFTER, meta=run), "bragg", tmp_path / "two.bragg")
        option = page.get_by_label("Profile").locator("option").first
        expect(option).to_have_text(re.compile(r"two\.bragg · python3 train\.py · 12\.0 s · \d+ Nov,? \d\d:\d\d"))


def test_zoom_that_goes_on_outlives_a_change_of_the_file(pages: Any, tmp_path: Path) -> None:
    path = tmp_path / "run.bragg"
    formats.export(trace_from_text("stream 7\n  0-1000 matmul"), "bragg", path)
    with serving(path) as address:
        page = opened(pages, address, "timeline")
        page.get_by_role("button", name="matmul").wait_for()
        page.keyboard.down("w")
        formats.export(trace_from_text("stream 7\n  0-1000 softmax"), "bragg", path)
        page.get_by_role("button", name="softmax").wait_for()
        expect_address(page, "span=")
