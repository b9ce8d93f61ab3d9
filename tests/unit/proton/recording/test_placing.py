from __future__ import annotations

import time
from pathlib import Path

import pytest

from bragg.proton.recording import placing


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(placing, "_placed", set())
    for name in ("RANK", "WORLD_SIZE"):
        monkeypatch.delenv(name, raising=False)


def written(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def test_earlier_file_is_replaced(tmp_path: Path) -> None:
    wanted = written(tmp_path / "x.hatchet", "old")
    assert placing.place(written(tmp_path / "new", "new"), wanted, 0) == wanted
    assert wanted.read_text() == "new"
    assert [path.name for path in tmp_path.iterdir()] == ["x.hatchet"]


def test_file_of_another_rank_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started_ns = time.time_ns() - 10**9
    monkeypatch.setenv("RANK", "3")
    monkeypatch.setenv("WORLD_SIZE", "4")
    wanted = written(tmp_path / "x.hatchet", "rank 0")
    with pytest.warns(
        RuntimeWarning, match=r"another rank wrote .*x\.hatchet; this one's profile is x\.rank3\.hatchet"
    ):
        placed = placing.place(written(tmp_path / "new", "rank 3"), wanted, started_ns)
    assert (placed.name, placed.read_text(), wanted.read_text()) == ("x.rank3.hatchet", "rank 3", "rank 0")


def test_rank_replaces_what_it_wrote_itself_or_an_earlier_job_did(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "2")
    wanted = written(tmp_path / "x.hatchet", "last week")
    for text in ("first", "second"):
        assert (
            placing.place(written(tmp_path / "new", text), wanted, time.time_ns() + 10**9 * (text == "first")) == wanted
        )
    assert wanted.read_text() == "second"
