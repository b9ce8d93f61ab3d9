from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from bragg import formats
from bragg.errors import BadFile
from bragg.formats.encodings.protobuf import message, number, text
from bragg.model import Profile
from tests.support.profiles import tree_to_text

STRINGS = ["", "samples", "count", "cpu", "nanoseconds", "main", "a.py", "inlined", "work.c"]


def function(function_id: int, name: int, file: int) -> bytes:
    return message(5, number(1, function_id), number(2, name), number(4, file))


def line(function_id: int, line_number: int) -> bytes:
    return message(4, number(1, function_id), number(2, line_number))


def sample(locations: bytes, *values: int) -> bytes:
    return message(2, message(1, locations), *(number(2, value) for value in values))


def content(*samples: bytes, strings: list[str] = STRINGS) -> bytes:
    return b"".join(
        [
            message(1, number(1, 1), number(2, 2)),
            message(1, number(1, 3), number(2, 4)),
            *samples,
            message(4, number(1, 1), line(1, 3)),
            message(4, number(1, 2), line(3, 9), line(2, 5)),
            message(4, number(1, 3), number(3, 0xBEEF)),
            *(function(1, 5, 6), function(2, 5, 8), function(3, 7, 8)),
            *(text(6, string) for string in strings),
            number(9, 1_000),
            number(10, 500),
        ]
    )


def load(folder: Path, written: bytes) -> Profile:
    (folder / "file").write_bytes(written)
    profile = formats.load(folder / "file")
    profile.check()
    return profile


def test_stacks_are_outermost_first_with_inlined_functions_below_their_callers(tmp_path: Path) -> None:
    profile = load(tmp_path, gzip.compress(content(sample(b"\x02\x01", 2, 20_000), sample(b"\x03\x01", 1, 10_000))))
    assert tree_to_text(profile).splitlines() == [
        "root",
        "  a.py:3@main",
        "    work.c:5@main",
        "      work.c:9@inlined host=20us",
        "    0xbeef host=10us",
    ]
    assert profile.total("samples") == 3
    assert (profile.meta["started_ns"], profile.meta["stopped_ns"]) == (1_000, 1_500)


def test_content_that_is_not_compressed_is_read_too(tmp_path: Path) -> None:
    assert load(tmp_path, content(sample(b"\x01", 1, 5))).total("host_time") == 5


@pytest.mark.parametrize(
    ("written", "error"),
    [
        (content(sample(b"\x07", 1, 5)), "there is no location 7"),
        (content(sample(b"\x01", 1)), "a sample has 1 values of 2 types"),
        (content(sample(b"\x01", 1, 5), strings=STRINGS[:3]), "there is no string 3"),
        (content(sample(b"\x01", 1, 5))[:-1], "breaks off in a field"),
        (content(sample(b"\x81", 1, 5)), "breaks off in a list of numbers"),
        (content(strings=["x"]), "unknown format"),
    ],
)
def test_damage_is_told(written: bytes, error: str, tmp_path: Path) -> None:
    with pytest.raises(BadFile, match=error):
        load(tmp_path, written)
