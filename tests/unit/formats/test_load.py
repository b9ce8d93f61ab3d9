from __future__ import annotations

import gc
import gzip
import os
from pathlib import Path

import pytest

from bragg import formats
from bragg.errors import BadFile, NothingRecorded, UsageError
from bragg.formats.files import new_file
from tests.support.captures import small_capture
from tests.support.profiles import profile_from_text, tree_to_text


def test_a_file_is_known_by_its_first_bytes_whatever_its_name(tmp_path: Path) -> None:
    part = small_capture().write(tmp_path / "strange name")
    assert formats.load(part).total("gpu_time") == 300
    formats.export(formats.load(part), "bragg", tmp_path / "other")
    assert formats.load(str(tmp_path / "other")).total("gpu_time") == 300


def test_a_missing_file_is_said_to_be_missing(tmp_path: Path) -> None:
    with pytest.raises(BadFile, match=r"cannot read .*gone.bragg: No such file or directory"):
        formats.load(tmp_path / "gone.bragg")


def test_a_folder_is_no_profile(tmp_path: Path) -> None:
    with pytest.raises(BadFile, match="Is a directory"):
        formats.load(tmp_path)


@pytest.mark.parametrize("content", [b"", b"\x7fELF", b"[{}]"])
def test_an_unknown_file_is_refused_with_what_to_give_instead(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(content)
    with pytest.raises(BadFile, match="is not a profile: unknown format") as error:
        formats.load(path)
    assert "Give a .bragg file" in error.value.hint


def test_a_program_is_answered_with_how_to_record_it(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("print()")
    with pytest.raises(BadFile, match="is a program, not a profile") as error:
        formats.load(tmp_path / "train.py")
    assert error.value.hint == f"Record it: bragg run {tmp_path}/train.py"


def test_a_capture_to_which_nothing_was_written_yet_is_one(tmp_path: Path) -> None:
    capture = tmp_path / "4711.part"
    capture.touch()
    with pytest.raises(NothingRecorded, match="holds no measurement") as error:
        formats.load(capture)
    assert error.value.hint == "Nothing was written to it yet"


def test_a_format_that_is_only_read_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="'capture' can be read but not written") as error:
        formats.export(profile_from_text("root"), "capture", tmp_path / "x")
    assert "perfetto" in error.value.hint
    assert "pprof" not in error.value.hint


def test_a_missing_folder_is_said_before_anything_is_written(tmp_path: Path) -> None:
    with pytest.raises(BadFile, match=r"cannot write .*x.bragg: No such file") as error:
        formats.export(profile_from_text("root\n  k 1us"), "bragg", tmp_path / "gone" / "x.bragg")
    assert error.value.hint


@pytest.mark.parametrize("format_name", ["chrome", "perfetto"])
def test_a_tree_without_a_timeline_is_not_written_as_an_empty_trace(format_name: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="has no timeline") as error:
        formats.export(profile_from_text("root\n  k 1us"), format_name, tmp_path / "trace")
    assert error.value.hint == (
        "Record it again with: bragg run --data trace; or show its sums as a flame graph: bragg export -f speedscope"
    )
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("format_name", ["speedscope", "collapsed"])
def test_a_profile_without_time_is_not_written_as_an_empty_flame_graph(format_name: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="holds no time"):
        formats.export(profile_from_text("root"), format_name, tmp_path / "flames")


def test_a_new_file_gets_the_permissions_of_any_new_file(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        with new_file(tmp_path / "file") as file:
            file.write(b"text")
    finally:
        os.umask(before)
    assert (tmp_path / "file").stat().st_mode & 0o777 == 0o640


def test_a_full_disk_is_an_error_of_one_line_and_leaves_no_rest(tmp_path: Path) -> None:
    with pytest.raises(BadFile, match="No space left on device"), new_file(tmp_path / "file"):
        raise OSError(28, os.strerror(28))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["scopes-3.9.hatchet", "scopes-3.9.hatchet_msgpack", "scopes-3.9.chrome_trace"])
def test_text_and_messages_may_be_compressed(name: str, tmp_path: Path) -> None:
    path = Path(__file__).parents[2] / "golden" / "proton" / name
    (tmp_path / "file").write_bytes(gzip.compress(path.read_bytes()))
    assert tree_to_text(formats.load(tmp_path / "file")) == tree_to_text(formats.load(path))


def test_archives_are_not_compressed_again(tmp_path: Path) -> None:
    formats.export(profile_from_text("root\n  k 1us"), "bragg", tmp_path / "run.bragg")
    (tmp_path / "file").write_bytes(gzip.compress((tmp_path / "run.bragg").read_bytes()))
    with pytest.raises(BadFile, match="unknown format"):
        formats.load(tmp_path / "file")


def test_collector_works_on_after_a_file_was_read_or_refused(tmp_path: Path) -> None:
    (tmp_path / "bad.json").write_text('{"traceEvents":[{"ph":"X"}')
    with pytest.raises(BadFile):
        formats.load(tmp_path / "bad.json")
    assert gc.isenabled()


@pytest.mark.parametrize(
    ("asked", "hint"),
    [
        ("out", "Did you mean {}/out.bragg?"),
        ("oat.bragg", "Did you mean {}/out.bragg?"),
        ("trace.json", "Check the path and its permissions"),
        ("nowhere/out.bragg", "Check the path and its permissions"),
    ],
)
def test_a_missing_file_is_answered_with_the_profile_beside_it(tmp_path: Path, asked: str, hint: str) -> None:
    (tmp_path / "out.bragg").touch()
    with pytest.raises(BadFile, match="cannot read") as error:
        formats.load(tmp_path / asked)
    assert error.value.hint == hint.format(tmp_path)
