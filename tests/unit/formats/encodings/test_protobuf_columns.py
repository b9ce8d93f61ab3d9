from __future__ import annotations

import re

import numpy as np
import pytest

from bragg.formats.encodings.protobuf import fields, message, number, signed
from bragg.formats.encodings.protobuf_columns import columns, spans
from bragg.model.table import Int64Array

# Rows below 200 are read one by one, others at once.
N_ROWS = (3, 1000)
VALUES = (0, 1, 127, 128, 2**32, 2**63 - 1, 2**63, 2**64 - 1)
FIXED = b"\x31" + bytes(8) + b"\x3d" + bytes(4)  # Fields 6 and 7, of eight and of four bytes.


def _message(row: int) -> bytes:
    repeated = number(1, VALUES[row % 8]) if row % 3 else b""
    return number(1, row) + message(2, b"x" * (row % 300)) + FIXED + number(300, row) + repeated + message(4)


def _spans(content: bytes) -> list[tuple[Int64Array, Int64Array]]:
    return list(spans(content, 1))


@pytest.mark.parametrize("n_rows", N_ROWS)
def test_columns_have_what_the_fields_of_each_message_hold(n_rows: int) -> None:
    rows = [_message(row) for row in range(n_rows)]
    content = b"".join(message(1, row) + number(2, 5) + message(300, b"other") for row in rows)
    ((begin, end),) = _spans(content)
    assert [content[b:e] for b, e in zip(begin, end, strict=True)] == rows
    first, text, far, absent = columns(content, begin, end, (1, 2, 300, 9))
    told = [dict(fields(row)) for row in rows]
    assert first.number.tolist() == [signed(row[1]) for row in told if isinstance(row[1], int)]
    assert [content[b:e] for b, e in zip(text.begin, text.end, strict=True)] == [row[2] for row in told]
    assert far.number.tolist() == [row[300] for row in told]
    assert not absent.number.any()
    assert not absent.begin.any()


@pytest.mark.parametrize("n_rows", N_ROWS)
@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (b"\x08", "breaks off in a field, at byte"),
        (b"\x08\x80", "breaks off in a field, at byte"),
        (b"\x12\x05abcd", "breaks off in a field, at byte"),
        (b"\x12" + b"\xff" * 9 + b"\x01", "breaks off in a field, at byte"),
        (b"\x39" + bytes(7), "breaks off in a field, at byte"),
        (b"\xff" * 12, "a number has too many bytes"),
        (b"\x0b", "a field of type 3 is unknown"),
        (b"\x02\x00", "a field of type 2 is unknown"),
    ],
)
def test_a_damaged_message_is_refused_although_others_follow(n_rows: int, damage: bytes, said: str) -> None:
    rows = [_message(row) for row in range(n_rows)]
    rows[1] += damage
    content = b"".join(message(1, row) for row in rows)
    ((begin, end),) = _spans(content)
    with pytest.raises(ValueError, match=re.escape(said)):
        columns(content, begin, end, (1, 2))


@pytest.mark.parametrize("content", [b"\x0a", b"\x0a\x05abcd", b"\x0a\x80", b"\x0a\x80\x02abc", b"\x12\x05a"])
def test_content_that_breaks_off_is_refused(content: bytes) -> None:
    with pytest.raises(ValueError, match="breaks off in a field, at byte 3"):
        _spans(message(1, b"x") + content)


def test_messages_come_in_batches() -> None:
    content = message(1, b"ab") * 70_000
    begin, end = (np.concatenate(each) for each in zip(*_spans(content), strict=True))
    np.testing.assert_array_equal(begin, 2 + 4 * np.arange(70_000))
    np.testing.assert_array_equal(end, begin + 2)
