"""Functions of an executable or a library, from its symbol table."""

from __future__ import annotations

import mmap
import re
import struct
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

# Fields of the 64-bit, little-endian form. Source: System V ABI, "Object Files".
_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = np.dtype(
    {
        "names": ["type", "offset", "size", "link"],
        "formats": ["<u4", "<u8", "<u8", "<u4"],
        "offsets": [4, 24, 32, 40],
        "itemsize": 64,
    }
)
_SYMBOL = np.dtype(
    {
        "names": ["name", "info", "section", "value", "size"],
        "formats": ["<u4", "u1", "<u2", "<u8", "<u8"],
        "offsets": [0, 4, 6, 8, 16],
        "itemsize": 24,
    }
)
_SYMBOL_TABLE, _NOTES, _DYNAMIC_SYMBOLS = 2, 7, 11
_FUNCTION, _INDIRECT_FUNCTION = 2, 10
_GLOBAL = 1
_NOTE = struct.Struct("<III")
_BUILD_ID = 3
# Parts that compilers move out of a function, and copies for some arguments.
_PART = re.compile(r"(\.(cold|part|isra|constprop|lto_priv|llvm)(\.\d+)*)+$")


@dataclass(frozen=True, eq=False)
class ElfSymbols:
    """The functions of a file.

    Attributes:
        build_id: Hexadecimal; empty when the file has none.
    """

    build_id: str
    _value: NDArray[np.uint64]
    _end: NDArray[np.uint64]
    _name: NDArray[np.uint32]
    _strings: bytes

    @classmethod
    def read(cls, path: Path) -> ElfSymbols:
        """Read the larger symbol table of a file; a stripped one has that of the functions it exports alone.

        Raises:
            OSError: The file cannot be read.
            ValueError: It is not an ELF file of 64 bits, or damaged.
        """
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as image:
            sections = _sections(image)
            build_id = _build_id(image, sections)
            for kind in (_SYMBOL_TABLE, _DYNAMIC_SYMBOLS):
                for section in sections[sections["type"] == kind]:
                    return cls(build_id, *_functions(image, section, sections))
        return cls(build_id, *_NO_FUNCTIONS)

    def name(self, address: int) -> str:
        """The mangled name of the function at an address of the file, without what tells its parts; empty: unknown."""
        row = int(np.searchsorted(self._value, address, side="right")) - 1
        if row < 0 or not (self._value[row] == address or address < self._end[row]):
            return ""
        row = int(np.searchsorted(self._value, self._value[row]))  # of several names the best one is the first
        start = int(self._name[row])
        name = self._strings[start : self._strings.find(b"\0", start)]
        return _PART.sub("", name.decode("utf-8", "replace").partition("@")[0])


_NO_FUNCTIONS = (np.zeros(0, np.uint64), np.zeros(0, np.uint64), np.zeros(0, np.uint32), b"\0")


def _rows(image: mmap.mmap, dtype: np.dtype[np.void], offset: int, size_bytes: int) -> NDArray[np.void]:
    if offset + size_bytes > len(image):
        raise ValueError("a table leads out of the file")
    return np.frombuffer(image[offset : offset + size_bytes // dtype.itemsize * dtype.itemsize], dtype)


def _sections(image: mmap.mmap) -> NDArray[np.void]:
    if len(image) < _HEADER.size:
        raise ValueError("it is not an ELF file")
    magic, *_, offset, _flags, _size, _, _, entry_size, count, _ = _HEADER.unpack_from(image)
    if magic[:6] != b"\x7fELF\x02\x01" or (count and entry_size != _SECTION.itemsize):
        raise ValueError("it is not an ELF file of 64 bits, little-endian")
    return _rows(image, _SECTION, offset, count * _SECTION.itemsize)


def _functions(
    image: mmap.mmap, table: np.void, sections: NDArray[np.void]
) -> tuple[NDArray[np.uint64], NDArray[np.uint64], NDArray[np.uint32], bytes]:
    """Address, end and name of each function by address, those with the better name first, and the names."""
    if table["link"] >= len(sections):
        raise ValueError("its symbols have no names")
    strings = sections[table["link"]]
    names = image[int(strings["offset"]) : int(strings["offset"] + strings["size"])]
    symbols = _rows(image, _SYMBOL, int(table["offset"]), int(table["size"]))
    kind = symbols["info"] & 0xF
    symbols = symbols[((kind == _FUNCTION) | (kind == _INDIRECT_FUNCTION)) & (symbols["section"] != 0)]
    # Names of one function: the exported one, and of these the one that is less of the library's own.
    is_local = symbols["info"] >> 4 != _GLOBAL
    letters = np.frombuffer(names + b"\0", np.uint8)
    is_hidden = letters[np.minimum(symbols["name"], len(names))] == ord("_")
    order = np.lexsort((is_hidden, is_local, symbols["value"]))
    symbols = symbols[order]
    return symbols["value"], symbols["value"] + symbols["size"], symbols["name"], names


def _build_id(image: mmap.mmap, sections: NDArray[np.void]) -> str:
    for section in sections[sections["type"] == _NOTES]:
        notes = image[int(section["offset"]) : int(section["offset"] + section["size"])]
        at = 0
        while at + _NOTE.size <= len(notes):
            name_bytes, content_bytes, kind = _NOTE.unpack_from(notes, at)
            content = at + _NOTE.size + _padded(name_bytes)
            if kind == _BUILD_ID and notes[at + _NOTE.size : content] == b"GNU\0":
                return notes[content : content + content_bytes].hex()
            at = content + _padded(content_bytes)
    return ""


def _padded(size_bytes: int) -> int:
    return (size_bytes + 3) // 4 * 4
