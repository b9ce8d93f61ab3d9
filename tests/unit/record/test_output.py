from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from bragg.errors import NothingRecorded, RecordingFailed
from bragg.model import Profile
from bragg.record.output import Producer, claim, expand, finish_capture, make_capture_directory
from tests.support.profiles import profile_from_text

ALONE = Producer("train", 42, None, "gpubox")
RANK_3 = Producer("train", 42, 3, "gpubox")


@pytest.mark.parametrize(
    ("pattern", "producer", "extra", "name"),
    [
        ("%s.bragg", ALONE, False, "train.bragg"),
        ("%s.bragg", ALONE, True, "train-p42.bragg"),
        ("%s.bragg", RANK_3, False, "train-r3.bragg"),
        ("%s.bragg", RANK_3, True, "train-r3-p42.bragg"),
        ("run-%p.bragg", ALONE, True, "run-42.bragg"),
        ("run-%r.bragg", RANK_3, False, "run-3.bragg"),
        ("run-%r.bragg", ALONE, False, "run-0.bragg"),
        ("%h/%r/x", RANK_3, False, "gpubox/3/x.bragg"),
        ("100%%", ALONE, False, "100%.bragg"),
        ("out/", ALONE, False, "out/train.bragg"),
        ("v1.2", ALONE, False, "v1.2.bragg"),
    ],
)
def test_pattern_gives_name(pattern: str, producer: Producer, extra: bool, name: str) -> None:
    assert expand(pattern, producer, extra=extra) == Path(name)


def test_existing_directory_stands_for_the_default_name_in_it(tmp_path: Path) -> None:
    assert expand(str(tmp_path), ALONE) == tmp_path / "train.bragg"


def test_existing_file_is_kept_and_the_new_one_numbered(tmp_path: Path) -> None:
    path = tmp_path / "a.bragg"
    path.write_text("precious")
    assert claim(path, set(), force=False) == tmp_path / "a-2.bragg"
    assert claim(path, set(), force=False) == tmp_path / "a-3.bragg"
    assert path.read_text() == "precious"


def test_force_takes_an_existing_name_but_not_one_of_the_same_run(tmp_path: Path) -> None:
    path = tmp_path / "a.bragg"
    path.touch()
    taken: set[Path] = set()
    assert [claim(path, taken, force=True) for _ in range(2)] == [path, tmp_path / "a-2.bragg"]


def test_capture_directory_is_hidden_beside_the_profile(tmp_path: Path) -> None:
    directory = make_capture_directory(str(tmp_path / "new" / "%p" / "x.bragg"))
    assert directory.parent == tmp_path / "new"
    assert directory.name.startswith(".")


def test_unwritable_place_is_told_before_the_start(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(RecordingFailed, match=r"cannot write to .*file"):
        make_capture_directory(str(tmp_path / "file" / "x.bragg"))


def test_full_disk_is_told_before_the_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(1 << 30, 1 << 30, 15 << 20))
    with pytest.raises(RecordingFailed, match="15 MB free"):
        make_capture_directory(str(tmp_path / "x.bragg"))
    assert list(tmp_path.iterdir()) == []


def test_empty_capture_is_removed_and_takes_no_name(tmp_path: Path) -> None:
    capture = tmp_path / "1.part"
    capture.touch()

    def finisher(capture: Path, output: Path, /, *, exit_code: int | None = None) -> Profile:
        raise NothingRecorded("empty")

    with pytest.raises(NothingRecorded):
        finish_capture(capture, finisher, lambda _: pytest.fail("a name was taken"))
    assert not capture.exists()


def test_an_interrupt_leaves_the_capture_and_no_empty_profile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    capture = tmp_path / "7.part"
    capture.touch()

    def finisher(_capture: Path, destination: Path, /, *, exit_code: int | None = None) -> Profile:
        destination.write_text("profile")
        return profile_from_text("a 1")

    def interrupt(_source: Path, _destination: Path) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(shutil, "move", interrupt)
    with pytest.raises(KeyboardInterrupt):
        finish_capture(capture, finisher, lambda _: claim(tmp_path / "a.bragg", set(), force=False))
    assert list(tmp_path.iterdir()) == [capture]
