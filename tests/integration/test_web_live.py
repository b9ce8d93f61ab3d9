"""What a server shows of a run that goes on."""

from __future__ import annotations

import gzip
import subprocess
import sys
import time
from pathlib import Path

from bragg import formats
from bragg.errors import NothingRecorded
from bragg.views.web.report_payload import report_payload
from bragg.views.web.shelf import Entry, Shelf

PROGRAM = """
import pathlib, time, bragg
while not pathlib.Path("enough").exists():
    with bragg.scope("step"):
        time.sleep(0.01)
"""
PATIENCE_S = 120.0


def test_run_is_seen_while_it_goes_on_and_its_profile_after_it(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(PROGRAM)
    shelf = Shelf([tmp_path], lambda path: report_payload(formats.load(path), path.name))
    command = [sys.executable, "-m", "bragg", "run", "--flush-interval", "50", "--no-summary", "train.py"]
    with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.DEVNULL) as running:
        try:
            entry = entry_named(shelf, ".part")
            assert header_with(shelf, entry, b'"step"')
        finally:
            (tmp_path / "enough").touch()
        assert running.wait(PATIENCE_S) == 0
    assert [entry.title for entry in shelf.entries()] == ["train.bragg"]
    assert header_with(shelf, shelf.entries()[0], b'"step"')


def entry_named(shelf: Shelf, suffix: str) -> Entry:
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        found = [entry for entry in shelf.entries() if entry.title.endswith(suffix)]
        if found:
            return found[0]
        time.sleep(0.02)
    raise AssertionError(f"there is no {suffix} file")


def header_with(shelf: Shelf, entry: Entry, text: bytes) -> bool:
    """Whether the page of an entry comes to hold a text."""
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        try:
            if text in gzip.decompress(shelf.packed(entry.number)):
                return True
        except NothingRecorded:
            pass  # the first flush is still to come
        time.sleep(0.05)
    return False
