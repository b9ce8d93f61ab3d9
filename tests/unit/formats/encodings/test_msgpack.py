from __future__ import annotations

import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bragg.formats.encodings import deep_json, msgpack

SCALARS = st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False) | st.text()
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner))


@given(VALUES)
def test_what_is_written_is_read_again(value: Any) -> None:
    assert msgpack.decode(msgpack.encode(value)) == value


@pytest.mark.parametrize(
    ("value", "content"),
    [
        (127, "7f"),
        (-32, "e0"),
        (128, "cc80"),
        (-33, "d0df"),
        (256, "cd0100"),
        (-32769, "d2ffff7fff"),
        (2**64 - 1, "cf" + "ff" * 8),
        (1.5, "cb3ff8000000000000"),
        ("ä", "a2c3a4"),
        ({"a": [None, True]}, "81a16192c0c3"),
        ([0] * 16, "dc0010" + "00" * 16),
    ],
)
def test_values_are_written_in_the_shortest_way(value: Any, content: str) -> None:
    assert msgpack.encode(value).hex() == content


def test_short_floats_are_read_though_not_written() -> None:
    assert msgpack.decode(b"\xca" + struct.pack(">f", 0.5)) == 0.5


@pytest.mark.parametrize(
    ("content", "error"),
    [
        ("", "cut short"),
        ("92c0", "2 values do not fit"),
        ("a5c3", "cut short"),
        ("ddffffffff", "4294967295 values do not fit"),
        ("c0c0", "more follows"),
        ("c1", "byte 0xc1 at 0 is not of JSON"),
        ("8101c0", "a key is not text: 1"),
    ],
)
def test_damage_is_said(content: str, error: str) -> None:
    with pytest.raises(ValueError, match=error):
        msgpack.decode(bytes.fromhex(content))


@pytest.mark.parametrize(("value", "error"), [(2**64, OverflowError), ({1, 2}, TypeError)])
def test_what_has_no_json_is_refused(value: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        msgpack.encode(value)


def test_nesting_deeper_than_the_call_stack_is_written_and_read() -> None:
    assert depth(msgpack.decode(msgpack.encode(nested(100_000)))) == 100_000


def test_json_deeper_than_the_call_stack_is_read() -> None:
    text = '[1, {"a": ' * 50_000 + '"x\\n"' + "}]" * 50_000
    value = deep_json.loads(text.encode())
    for _ in range(50_000):
        value = value[1]["a"]
    assert value == "x\n"


@pytest.mark.parametrize("damage", ["1" + "]" * 49_999, "1" + "]" * 50_001, '{"a" 1}' + "]" * 50_000])
def test_damage_of_deep_json_is_said(damage: str) -> None:
    with pytest.raises(ValueError, match="should stand"):
        deep_json.loads(b"[" * 50_000 + damage.encode())


def nested(levels: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(levels - 1):
        value = [value]
    return value


def depth(value: list[Any]) -> int:
    levels = 1
    while value:
        value = value[0]
        levels += 1
    return levels
