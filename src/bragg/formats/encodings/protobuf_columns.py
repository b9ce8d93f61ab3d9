"""Many protocol buffer messages of one kind, read at once: a column for each field that is wanted."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bragg.formats.encodings.protobuf import (
    FIXED_BYTES,
    LENGTH,
    MAX_VARINT_BYTES,
    VARINT,
    broken_off,
    read_field,
    signed,
)
from bragg.model.table import Int64Array

_BATCH = 1 << 16
# A step of numpy takes 0.2 ms, as long as 200 fields one by one: messages of many fields take no longer than those.
_FEWEST_AT_ONCE = 200


@dataclass(frozen=True)
class Column:
    """A field of many messages; where it is repeated, the last one counts.

    Attributes:
        number: int64 [messages], a varint; 0: there is none.
        begin: int64 [messages], where its bytes begin in the content; 0: there are none.
        end: int64 [messages], where they end; 0: there are none.
    """

    number: Int64Array
    begin: Int64Array
    end: Int64Array


def spans(content: bytes, number: int) -> Iterator[tuple[Int64Array, Int64Array]]:
    """Where the messages in a field of the content begin and end: int64 [at most 65,536] each time.

    Raises:
        ValueError: The content is not a message.
    """
    tag = number << 3 | LENGTH  # One byte: for fields below 16.
    begins, ends = array("q"), array("q")
    at, n_bytes = 0, len(content)
    while at < n_bytes:
        start = at
        if content[at] == tag and at + 1 < n_bytes and (size := content[at + 1]) < 0x80:
            begin, at, is_wanted = at + 2, at + 2 + size, True
        else:
            begin, at, is_wanted = _field_at(content, at, number)
        if at > n_bytes:
            raise broken_off(start)
        if is_wanted:
            begins.append(begin)
            ends.append(at)
        if len(begins) == _BATCH:
            yield np.array(begins), np.array(ends)
            begins, ends = array("q"), array("q")
    if begins:
        yield np.array(begins), np.array(ends)


def _field_at(content: bytes, at: int, number: int) -> tuple[int, int, bool]:
    """Where the bytes of a field begin and end, and whether it is the wanted one."""
    try:
        field, value, end = read_field(content, at)
    except IndexError as error:
        raise broken_off(at) from error
    if isinstance(value, bytes):
        return end - len(value), end, field == number
    return end, end, False


def columns(content: bytes, begin: Int64Array, end: Int64Array, wanted: Sequence[int]) -> list[Column]:
    """The wanted fields of messages.

    Args:
        content: What the messages lie in.
        begin: Where each begins: int64 [messages].
        end: Where it ends.
        wanted: Numbers of fields.

    Raises:
        ValueError: One of them is not a message.
    """
    found = {number: Column(*np.zeros((3, len(begin)), np.int64)) for number in wanted}
    row, at, stop = np.arange(len(begin)), begin, end
    while True:
        is_left = at < stop
        row, at, stop = row[is_left], at[is_left], stop[is_left]
        if len(row) < _FEWEST_AT_ONCE:
            break
        at = _add_fields(found, content, row, at, stop)
    for each in zip(row.tolist(), at.tolist(), stop.tolist(), strict=True):
        _add_rest(found, content, *each)
    return list(found.values())


def _add_fields(
    found: dict[int, Column], content: bytes, row: Int64Array, at: Int64Array, stop: Int64Array
) -> Int64Array:
    """Add the next field of each row, and return where it ends.

    Rows that are damaged there are read one by one, which says why.
    """
    octets = np.frombuffer(content, np.uint8)
    tag, begin = _varints(octets, at, stop)
    field, wire = tag >> np.uint64(3), (tag & np.uint64(7)).astype(np.uint8)
    is_number, is_text = wire == VARINT, wire == LENGTH
    value, is_known = np.zeros(len(row), np.uint64), is_number | is_text
    value[is_known], begin[is_known] = _varints(octets, begin[is_known], stop[is_known])
    for fixed, size in FIXED_BYTES.items():
        value[wire == fixed] = size
        is_known |= wire == fixed
    left = np.maximum(stop - begin, 0).astype(np.uint64)
    is_damaged = (begin > stop) | ~is_number & (~is_known | (field == 0) | (value > left))
    for each in np.flatnonzero(is_damaged).tolist():
        _add_rest(found, content, int(row[each]), int(at[each]), int(stop[each]))
    end = np.where(is_number | is_damaged, begin, begin + np.minimum(value, left).astype(np.int64))
    for number, column in found.items():
        here = (field == number) & ~is_damaged
        numbers, texts = here & is_number, here & is_text
        column.number[row[numbers]] = value[numbers].view(np.int64)
        column.begin[row[texts]], column.end[row[texts]] = begin[texts], end[texts]
    return np.where(is_damaged, stop, end)


def _add_rest(found: dict[int, Column], content: bytes, row: int, at: int, stop: int) -> None:
    """Add the fields of one row that are left."""
    while at < stop:
        begin = at
        try:
            field, value, at = read_field(content, at)
        except IndexError as error:
            raise broken_off(begin) from error
        if at > stop:
            raise broken_off(begin)
        if (column := found.get(field)) is None:
            continue
        if isinstance(value, int):
            column.number[row] = signed(value)
        else:
            column.begin[row], column.end[row] = at - len(value), at


def _varints(octets: NDArray[np.uint8], at: Int64Array, stop: Int64Array) -> tuple[NDArray[np.uint64], Int64Array]:
    """A number at each place, and where it ends; behind `stop` if it breaks off or has too many bytes."""
    value, at = np.zeros(len(at), np.uint64), at.copy()
    more = np.arange(len(at))
    for shift in range(0, 7 * MAX_VARINT_BYTES, 7):
        byte = octets.take(at[more], mode="clip")  # What is behind the content is behind `stop`, too.
        value[more] |= (byte & np.uint8(0x7F)).astype(np.uint64) << np.uint64(shift)
        at[more] += 1
        more = more[byte >= 0x80]
        if not len(more):
            return value, at
    at[more] = stop[more] + 1
    return value, at
