from __future__ import annotations

import io
import json
from typing import Any
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bragg.formats.encodings import json_stream
from bragg.formats.encodings.json_stream import read_list

SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
)


def read(content: bytes, n_bytes: int = 1 << 20) -> tuple[dict[str, Any], list[Any]]:
    found: list[Any] = []
    with mock.patch.object(json_stream, "_READ_BYTES", n_bytes):
        members = read_list(io.BytesIO(content), "events", found.append)
    return members, found


@given(
    st.lists(VALUES, max_size=5),
    st.dictionaries(st.text(max_size=4).filter(lambda name: name != "events"), VALUES, max_size=3),
    st.integers(1, 9),
    st.sampled_from([None, 1]),
    st.booleans(),
)
def test_whatever_the_pieces_the_values_are_those_of_the_document(
    elements: list[Any], others: dict[str, Any], n_bytes: int, indent: int | None, is_ascii: bool
) -> None:
    text = json.dumps({**others, "events": elements, "last": 1.5}, indent=indent, ensure_ascii=is_ascii)
    # Lone surrogates are not UTF-8: they become question marks.
    content = text.encode(errors="replace")
    whole = json.loads(content)
    assert read(content, n_bytes) == ({name: whole[name] for name in whole if name != "events"}, whole["events"])


def test_a_list_may_break_off_behind_an_element_and_an_object_may_not() -> None:
    assert read(b'[{"a": 1}, 2')[1] == [{"a": 1}, 2]
    assert read(b"[1,2,")[1] == [1, 2]
    with pytest.raises(ValueError, match="breaks off"):
        read(b'{"events": [1, 2')


def test_bytes_that_are_no_text_are_replaced_and_control_characters_taken() -> None:
    assert read(b'["\xff\x01"]')[1] == ["�\x01"]
