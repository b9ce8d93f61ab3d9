"""What a kernel takes of a multiprocessor, from the `.nv.info` section of its cubin.

| what | bytes |
|---|---|
| record | u8 format, u8 attribute, u16 size; a payload of that size if the format is 4 |
| attribute 0x2f | u32 symbol, u32 registers of a thread |
| attribute 0x11 | u32 symbol, u32 bytes of stack of a thread |
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_SYMBOL_TABLE, _REGISTERS, _FRAME, _WITH_PAYLOAD = 2, 0x2F, 0x11, 4


@dataclass(frozen=True)
class Resources:
    """What one kernel takes.

    Attributes:
        registers: Of a thread.
        stack_bytes: Of a thread.
    """

    registers: int
    stack_bytes: int


def resources_of(cubin: bytes, symbol: str) -> Resources | None:
    """What a kernel takes; None: the cubin does not say.

    Raises:
        ValueError: It is no cubin, or a damaged one.
    """
    try:
        return _resources(cubin, symbol)
    except (struct.error, IndexError) as error:
        raise ValueError(f"the cubin is damaged: {error}") from error


def _resources(cubin: bytes, symbol: str) -> Resources | None:
    if cubin[:5] != b"\x7fELF\x02":
        raise ValueError("it is no 64-bit ELF file")
    sections = list(_sections(cubin))
    number = _symbol_number(cubin, sections, symbol)
    found: dict[int, int] = {}
    for name, offset, size, *_ in sections:
        if name == ".nv.info":
            found |= {
                attribute: value for attribute, of, value in _records(cubin[offset : offset + size]) if of == number
            }
    return Resources(found[_REGISTERS], found.get(_FRAME, 0)) if _REGISTERS in found else None


def _sections(cubin: bytes) -> Iterator[tuple[str, int, int, int, int]]:
    """Name, offset, size, type and link of each."""
    (start,) = struct.unpack_from("<Q", cubin, 0x28)
    size, count, names = struct.unpack_from("<HHH", cubin, 0x3A)
    rows = [_SECTION.unpack_from(cubin, start + row * size) for row in range(count)]
    for row in rows:
        yield _text(cubin, rows[names][4] + row[0]), row[4], row[5], row[1], row[6]


def _symbol_number(cubin: bytes, sections: list[tuple[str, int, int, int, int]], symbol: str) -> int:
    """-1: there is none."""
    for _, offset, size, kind, link in sections:
        if kind == _SYMBOL_TABLE:
            for number, at in enumerate(range(offset, offset + size, _SYMBOL.size)):
                if _text(cubin, sections[link][1] + _SYMBOL.unpack_from(cubin, at)[0]) == symbol:
                    return number
    return -1


def _records(info: bytes) -> Iterator[tuple[int, int, int]]:
    """Attribute, symbol and value of those that are of a symbol."""
    at = 0
    while at + 4 <= len(info):
        kind, attribute, size = struct.unpack_from("<BBH", info, at)
        at += 4
        if kind == _WITH_PAYLOAD:
            if attribute in (_REGISTERS, _FRAME):
                yield (attribute, *struct.unpack_from("<II", info, at))
            at += size


def _text(cubin: bytes, at: int) -> str:
    return cubin[at : cubin.index(b"\0", at)].decode(errors="replace")
