"""Protocol buffer messages: read field by field; written one at a time, or one for each row of numpy columns."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bragg.model.table import BoolArray, UInt8Array

VARINT, _FIXED64, LENGTH, _FIXED32 = 0, 1, 2, 5
FIXED_BYTES = {_FIXED64: 8, _FIXED32: 4}
MAX_VARINT_BYTES = 10
_MASK_64 = (1 << 64) - 1


def number(field: int, value: int) -> bytes:
    """A varint field."""
    return _varint(field << 3 | VARINT) + _varint(value)


def text(field: int, value: str) -> bytes:
    """A string field."""
    return message(field, value.encode())


def message(field: int, *content: bytes) -> bytes:
    """A field that holds a message, or bytes."""
    joined = b"".join(content)
    return _varint(field << 3 | LENGTH) + _varint(len(joined)) + joined


def _varint(value: int) -> bytes:
    """Seven bits a byte, lowest first; all but the last byte have the top bit set."""
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def fields(content: bytes, *, may_break_off: bool = False) -> Iterator[tuple[int, int | bytes]]:
    """The fields of a message in their order: their numbers, and what they hold.

    Args:
        content: The message.
        may_break_off: Whether the last field may be incomplete; it is left out then.

    Raises:
        ValueError: The content is not a message.
    """
    at = 0
    while at < len(content):
        try:
            field, value, at = read_field(content, at)
        except IndexError as error:
            if may_break_off:
                return
            raise broken_off(at) from error
        yield field, value


def broken_off(at: int) -> ValueError:
    """What is wrong with a field that begins at a byte and has no end."""
    return ValueError(f"it breaks off in a field, at byte {at}")


def read_field(content: bytes, at: int) -> tuple[int, int | bytes, int]:
    """Number and value of a field, and where it ends.

    Raises:
        IndexError: It breaks off.
        ValueError: It is none.
    """
    tag, at = _read_varint(content, at)
    field, wire = tag >> 3, tag & 7
    if wire == VARINT:
        value, at = _read_varint(content, at)
        return field, value, at
    size, at = _read_varint(content, at) if wire == LENGTH else (FIXED_BYTES.get(wire, -1), at)
    if size < 0 or not field:
        raise ValueError(f"a field of type {wire} is unknown, at byte {at}")
    if at + size > len(content):
        raise IndexError
    return field, content[at : at + size], at + size


def varints(content: bytes) -> list[int]:
    """Packed numbers.

    Raises:
        ValueError: The last one breaks off.
    """
    if content.isascii():  # All of them are below 128, as most of small programs are.
        return list(content)
    found, at = [], 0
    try:
        while at < len(content):
            value, at = _read_varint(content, at)
            found.append(value)
    except IndexError as error:
        raise ValueError("it breaks off in a list of numbers") from error
    return found


def signed(value: int) -> int:
    """A number that was written as an int64."""
    return value - (1 << 64) if value >= 1 << 63 else value


def _read_varint(content: bytes, at: int) -> tuple[int, int]:
    """A number, and where it ends.

    Raises:
        IndexError: It breaks off.
        ValueError: It is longer than a number can be.
    """
    value = shift = 0
    while (byte := content[at]) & 0x80:
        value |= (byte & 0x7F) << shift
        shift += 7
        at += 1
        if shift >= 7 * MAX_VARINT_BYTES:
            raise ValueError(f"a number has too many bytes, at byte {at}")
    return (value | byte << shift) & _MASK_64, at + 1


class Messages:
    """Messages of the same shape, one for each row; fields are appended in order.

    Bytes are kept as columns with a mask of the rows that have them, so that a field is encoded for all rows at once.

    Args:
        rows: How many messages.
    """

    def __init__(self, rows: int) -> None:
        self._rows = rows
        self._columns: list[UInt8Array] = []
        self._present: list[BoolArray] = []
        self._lengths = np.zeros(rows, np.int64)

    def numbers(self, field: int, values: NDArray[Any], where: BoolArray | None = None) -> Messages:
        """A varint field: integers of any type [messages], in the rows of `where` [messages]; None: in all."""
        present = self._tag(field << 3 | VARINT, where)
        self._varints(values.astype(np.uint64), present)
        return self

    def fixed64(self, field: int, values: NDArray[Any], where: BoolArray | None = None) -> Messages:
        """A field of eight bytes: integers or doubles [messages], in the rows of `where` [messages]; None: in all."""
        present = self._tag(field << 3 | _FIXED64, where)
        for column in (
            np.ascontiguousarray(values).astype(values.dtype.newbyteorder("<")).view(np.uint8).reshape(-1, 8).T
        ):
            self._append(column, present)
        return self

    def messages(self, field: int, inner: Messages, where: BoolArray | None = None) -> Messages:
        """A field that holds the message of `inner` in the same row, where `where` [messages] is true; None: in all."""
        present = self._tag(field << 3 | LENGTH, where)
        self._varints(inner._lengths.astype(np.uint64), present)
        for column, inner_present in zip(inner._columns, inner._present, strict=True):
            self._append(column, inner_present & present)
        return self

    def encoded(self) -> bytes:
        """All messages one after another, without anything between them."""
        if not self._columns:
            return b""
        return np.stack(self._columns, axis=1)[np.stack(self._present, axis=1)].tobytes()

    def _tag(self, tag: int, where: BoolArray | None) -> BoolArray:
        present = np.ones(self._rows, np.bool_) if where is None else where
        for byte in _varint(tag):
            self._append(np.full(self._rows, byte, np.uint8), present)
        return present

    def _varints(self, values: NDArray[np.uint64], present: BoolArray) -> None:
        for _ in range(MAX_VARINT_BYTES):
            rest = values >> np.uint64(7)
            more = rest != 0
            self._append((values & np.uint64(0x7F) | more.astype(np.uint64) << np.uint64(7)).astype(np.uint8), present)
            present = present & more
            if not present.any():
                return
            values = rest

    def _append(self, column: UInt8Array, present: BoolArray) -> None:
        self._columns.append(column)
        self._present.append(present)
        self._lengths += present
