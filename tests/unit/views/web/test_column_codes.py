from __future__ import annotations

import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bragg.views.web.column_codes import ColumnWriter

exact = st.integers(-(2**53) + 1, 2**53 - 1)


def integers(data: bytes, *, delta: bool) -> list[int]:
    """What the page's script reads: zigzag varints."""
    values, value, place, before = [], 0, 0, 0
    for byte in data:
        value |= (byte & 0x7F) << place
        place += 7
        if byte < 0x80:
            before = (value >> 1 ^ -(value & 1)) + (before if delta else 0)
            values.append(before)
            value = place = 0
    return values


@given(st.lists(exact, max_size=40), st.booleans())
def test_integers_are_what_was_written(values: list[int], delta: bool) -> None:
    writer = ColumnWriter()
    column = writer.integers(np.array(values, np.int64), delta=delta)
    assert integers(writer.parts[0], delta=delta) == values
    assert column == {"code": "delta" if delta else "varint", "n": len(values), "at": 0, "size": writer.size_bytes}


def test_small_integers_take_a_byte() -> None:
    writer = ColumnWriter()
    writer.integers(np.array([0, -1, 63, -64, 64]))
    assert writer.parts == [bytes([0, 1, 126, 127, 128, 1])]


def test_fractions_are_doubles_and_whole_numbers_are_not() -> None:
    writer = ColumnWriter()
    assert writer.numbers(np.array([1.0, 2.0]))["code"] == "varint"
    assert writer.numbers(np.array([1.5, 2.0])) == {"code": "raw", "type": "f64", "n": 2, "at": 2, "size": 16}
    assert writer.parts[1] == struct.pack("<2d", 1.5, 2.0)


@pytest.mark.parametrize("value", [2.0**53, -(2.0**60)])
def test_numbers_beyond_a_double_stay_doubles(value: float) -> None:
    assert ColumnWriter().numbers(np.array([value]))["type"] == "f64"


def test_sparse_columns_hold_rows_and_values() -> None:
    writer = ColumnWriter()
    column = writer.sparse(np.array([0, 7, 0, 9]), np.array([False, True, False, True]))
    assert column["n"] == 4
    assert [integers(part, delta=delta) for part, delta in zip(writer.parts, (True, False), strict=True)] == [
        [1, 3],
        [7, 9],
    ]
