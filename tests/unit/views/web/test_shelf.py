from __future__ import annotations

import os
from pathlib import Path

from bragg.views.web.shelf import Shelf


def written(path: Path, second: int) -> None:
    path.write_bytes(b"x")
    os.utime(path, (second, second))


def titles(shelf: Shelf) -> list[str]:
    return [entry.title for entry in shelf.entries()]


def test_the_newest_run_of_a_directory_is_first_and_numbers_stay(tmp_path: Path) -> None:
    shelf = Shelf([tmp_path], Path.read_bytes)
    written(tmp_path / "old.bragg", 10)
    written(tmp_path / "new.bragg", 20)
    assert titles(shelf) == ["new.bragg", "old.bragg"]
    before = {entry.title: entry.number for entry in shelf.entries()}
    written(tmp_path / "newest.bragg", 30)
    assert titles(shelf) == ["newest.bragg", "new.bragg", "old.bragg"]
    written(tmp_path / "old.bragg", 40)
    assert titles(shelf) == ["old.bragg", "newest.bragg", "new.bragg"]
    now = {entry.title: entry.number for entry in shelf.entries()}
    assert {title: now[title] for title in before} == before


def test_a_capture_has_another_version_when_its_run_has_ended(tmp_path: Path) -> None:
    (tmp_path / "7.part").write_bytes(b"x")
    (tmp_path / "done.bragg").write_bytes(b"x")
    running = {tmp_path / "7.part"}
    shelf = Shelf([tmp_path / "7.part", tmp_path / "done.bragg"], Path.read_bytes, lambda path: path in running)
    before = [entry.version for entry in shelf.entries()]
    running.clear()
    after = [entry.version for entry in shelf.entries()]
    assert before[0] != after[0]
    assert before[1] == after[1]


def test_files_that_are_named_stay_in_their_order(tmp_path: Path) -> None:
    for second, name in enumerate(("b.bragg", "a.bragg", "c.bragg")):
        written(tmp_path / name, second)
    assert titles(Shelf([tmp_path / "b.bragg", tmp_path / "a.bragg"], Path.read_bytes)) == ["b.bragg", "a.bragg"]
