"""MessagePack, as far as JSON values need it, without recursion: call paths can be deeper than a call stack.

One byte says what follows; sizes and numbers are big endian.

    00-7f, e0-ff  the integer itself        cc-cf, d0-d3  unsigned, signed integer of 1, 2, 4, 8 bytes
    80-8f, de, df  map, its size in the code, in 2, in 4 bytes              ca, cb  float of 4, 8 bytes
    90-9f, dc, dd  list, its size in the code, in 2, in 4 bytes             c0      null
    a0-bf, d9-db   UTF-8 text, its size in the code, in 1, 2, 4 bytes       c2, c3  false, true
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from itertools import chain
from typing import Any

from bragg.formats.limits import Limits

_CONSTANTS = {0xC0: None, 0xC2: False, 0xC3: True}
_NUMBERS = {
    code: struct.Struct(f">{letter}")
    for code, letter in zip((0xCA, 0xCB, *range(0xCC, 0xD0), *range(0xD0, 0xD4)), "fdBHIQbhiq", strict=True)
}
_TEXT_SIZES = {0xD9: struct.Struct(">B"), 0xDA: struct.Struct(">H"), 0xDB: struct.Struct(">I")}
_LIST_SIZES = {0xDC: struct.Struct(">H"), 0xDD: struct.Struct(">I")}
_MAP_SIZES = {0xDE: struct.Struct(">H"), 0xDF: struct.Struct(">I")}


def encode(value: Any) -> bytes:
    """Write a JSON value.

    Raises:
        TypeError: The value, or one in it, has no JSON.
        OverflowError: An integer needs more than 64 bits.
    """
    written = bytearray()
    pending: list[Iterator[Any]] = [iter((value,))]
    while pending:
        for item in pending[-1]:
            if isinstance(item, dict):
                written += _head(len(item), 0x80, 15, _MAP_SIZES)
                pending.append(chain.from_iterable(item.items()))
                break
            if isinstance(item, list):
                written += _head(len(item), 0x90, 15, _LIST_SIZES)
                pending.append(iter(item))
                break
            written += _scalar(item)
        else:
            pending.pop()
    return bytes(written)


def decode(content: bytes, limits: Limits | None = None) -> Any:
    """Read a JSON value.

    Args:
        content: The value.
        limits: How many lists and maps it may hold; None: any number.

    Raises:
        ValueError: The content is cut short, continues after the value, holds what JSON has not, or too much.
    """
    return _Decoder(content, limits).value()


def _scalar(value: Any) -> bytes:
    if isinstance(value, str):
        text = value.encode("utf-8", "surrogatepass")
        return _head(len(text), 0xA0, 31, _TEXT_SIZES) + text
    if value is None or isinstance(value, bool):
        return bytes([next(code for code, constant in _CONSTANTS.items() if constant is value)])
    if isinstance(value, float):
        return b"\xcb" + _NUMBERS[0xCB].pack(value)
    if isinstance(value, int):
        return _integer(value)
    raise TypeError(f"{type(value).__name__} has no JSON")


def _integer(value: int) -> bytes:
    if -32 <= value < 128:
        return struct.pack("b" if value < 0 else "B", value)
    first, bits = (0xCC, value.bit_length()) if value >= 0 else (0xD0, (~value).bit_length() + 1)
    step = next((step for step in range(4) if bits <= 8 << step), None)
    if step is None:
        raise OverflowError(f"{value} needs more than 64 bits")
    return bytes([first + step]) + _NUMBERS[first + step].pack(value)


def _head(size: int, short: int, most: int, longer: dict[int, struct.Struct]) -> bytes:
    """The code and the size of a text, list or map."""
    if size <= most:
        return bytes([short | size])
    code = next(code for code, form in longer.items() if size < 1 << (8 * form.size))
    return bytes([code]) + longer[code].pack(size)


class _Decoder:
    def __init__(self, content: bytes, limits: Limits | None) -> None:
        self._content = content
        self._limits = limits
        self._at = 0
        self._n_containers = 0

    def value(self) -> Any:
        """The only value of the content."""
        whole: list[Any] = []
        # Lists that are being filled, with the number of values that each still waits for; a map is filled as a list
        # of keys and values.
        open_lists: list[tuple[list[Any], int, dict[str, Any] | None]] = [(whole, 1, None)]
        while open_lists:
            items, size, owner = open_lists[-1]
            if len(items) == size:
                open_lists.pop()
                if owner is not None:
                    owner.update(zip(map(_key, items[::2]), items[1::2], strict=True))
                continue
            item, n_inside = self._next()
            items.append(item)
            if n_inside:
                inside = ([], n_inside, item) if isinstance(item, dict) else (item, n_inside, None)
                open_lists.append(inside)
        if self._at != len(self._content):
            raise ValueError("more follows after the value")
        return whole[0]

    def _next(self) -> tuple[Any, int]:
        """A value, and how many values belong into it."""
        code = self._take(1)[0]
        if code < 0x80 or code >= 0xE0:
            return code if code < 0x80 else code - 0x100, 0
        if code < 0x90:
            return {}, self._bounded(2 * (code & 0x0F))
        if code < 0xA0:
            return [], self._bounded(code & 0x0F)
        if code < 0xC0:
            return self._text(code & 0x1F), 0
        return self._long(code)

    def _long(self, code: int) -> tuple[Any, int]:
        if code in _CONSTANTS:
            return _CONSTANTS[code], 0
        if code in _NUMBERS:
            return self._number(_NUMBERS[code]), 0
        if code in _TEXT_SIZES:
            return self._text(self._number(_TEXT_SIZES[code])), 0
        if code in _LIST_SIZES:
            return [], self._bounded(self._number(_LIST_SIZES[code]))
        if code in _MAP_SIZES:
            return {}, self._bounded(2 * self._number(_MAP_SIZES[code]))
        raise ValueError(f"byte {code:#x} at {self._at - 1} is not of JSON")

    def _number(self, form: struct.Struct) -> Any:
        return form.unpack(self._take(form.size))[0]

    def _text(self, size: int) -> str:
        return self._take(size).decode("utf-8", "replace")

    def _bounded(self, n_values: int) -> int:
        self._n_containers += 1
        if self._limits is not None:
            self._limits.check_rows(self._n_containers)
        if n_values > len(self._content) - self._at:
            raise ValueError(f"{n_values} values do not fit into what is left")
        return n_values

    def _take(self, size: int) -> bytes:
        end = self._at + size
        if end > len(self._content):
            raise ValueError("the content is cut short")
        taken, self._at = self._content[self._at : end], end
        return taken


def _key(key: Any) -> str:
    if not isinstance(key, str):
        raise ValueError(f"a key is not text: {key!r}")  # noqa: TRY004
    return key
