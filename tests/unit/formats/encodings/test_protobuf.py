from __future__ import annotations

import struct

import numpy as np
import pytest

from bragg.formats.encodings.protobuf import Messages, message, number, text


# Values of the encoding guide of Protocol Buffers.
def test_single_fields_are_encoded_as_the_guide_says() -> None:
    assert number(1, 150).hex() == "089601"
    assert text(2, "testing").hex() == "120774657374696e67"
    assert message(3, number(1, 150)).hex() == "1a03089601"


@pytest.mark.parametrize("value", [0, 1, 127, 128, 300, 2**32, 2**63, 2**64 - 1])
def test_columns_are_encoded_like_single_fields(value: int) -> None:
    values = np.array([value, 5, value], np.uint64)
    assert Messages(3).numbers(20, values).encoded() == number(20, value) + number(20, 5) + number(20, value)


def test_a_field_stands_only_in_the_rows_where_it_is_wanted() -> None:
    rows = (
        Messages(3).numbers(1, np.array([7, 8, 300])).numbers(2, np.array([1, 400, 300]), np.array([True, False, True]))
    )
    assert rows.encoded() == number(1, 7) + number(2, 1) + number(1, 8) + number(1, 300) + number(2, 300)


def test_messages_in_messages_have_the_length_of_their_row() -> None:
    inner = Messages(2).numbers(1, np.array([1, 2**40]))
    outer = Messages(2).messages(4, Messages(2).messages(3, inner))
    assert outer.encoded() == message(4, message(3, number(1, 1))) + message(4, message(3, number(1, 2**40)))


def test_an_absent_message_leaves_nothing_behind() -> None:
    inner = Messages(2).numbers(1, np.array([1, 2]))
    assert Messages(2).messages(4, inner, np.array([False, True])).encoded() == message(4, number(1, 2))


def test_eight_byte_fields_hold_integers_and_doubles() -> None:
    assert Messages(1).fixed64(1, np.array([5])).encoded() == b"\x09" + struct.pack("<q", 5)
    assert Messages(1).fixed64(1, np.array([0.5])).encoded() == b"\x09" + struct.pack("<d", 0.5)


def test_no_rows_are_no_bytes() -> None:
    assert Messages(0).numbers(1, np.array([], np.int64)).encoded() == b""
