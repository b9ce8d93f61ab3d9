from __future__ import annotations

import random
import struct
from pathlib import Path

import pytest

from bragg.code.elf_symbols import ElfSymbols

FUNCTION, LOCAL, GLOBAL, OBJECT = 2, 0, 1, 1
Symbol = tuple[str, int, int, int, int]  # name, binding, kind, address, size
ALPHA: Symbol = ("alpha", GLOBAL, FUNCTION, 0x100, 0x20)
SYMBOL_TABLE, STRINGS, NOTES = 2, 3, 7


def elf(symbols: list[Symbol], build_id: bytes = b"\xab\xcd") -> bytes:
    """An ELF file that is nothing but a header, a build id and a symbol table."""
    names, table = b"\0", bytes(24)
    for name, binding, kind, address, size in symbols:
        table += struct.pack("<IBBHQQ", len(names), binding << 4 | kind, 0, 1, address, size)
        names += name.encode() + b"\0"
    note = struct.pack("<III", 4, len(build_id), 3) + b"GNU\0" + build_id.ljust(4, b"\0")
    contents = [(0, b"", 0), (NOTES, note, 0), (SYMBOL_TABLE, table, 3), (STRINGS, names, 0)]
    body, rows = b"", b""
    for kind, content, link in contents:
        rows += struct.pack("<IIQQQQIIQQ", 0, kind, 0, 0, 64 + len(body), len(content), link, 0, 1, 0)
        body += content
    sections = 64 + len(body)
    header = struct.pack("<16sHHIQQQIHHHHHH", b"\x7fELF\x02\x01\x01", 3, 62, 1, 0, 0, sections, 0, 64, 0, 0, 64, 4, 0)
    return header + body + rows


def read(tmp_path: Path, symbols: list[Symbol]) -> ElfSymbols:
    path = tmp_path / "library.so"
    path.write_bytes(elf(symbols))
    return ElfSymbols.read(path)


@pytest.mark.parametrize(
    ("address", "name"), [(0x100, "alpha"), (0x11F, "alpha"), (0x120, ""), (0xFF, ""), (0x200, "beta"), (0x201, "")]
)
def test_a_function_is_found_by_the_addresses_that_it_covers(tmp_path: Path, address: int, name: str) -> None:
    symbols = read(tmp_path, [("beta", LOCAL, FUNCTION, 0x200, 0), ALPHA, ("data", GLOBAL, OBJECT, 0x120, 8)])
    assert symbols.name(address) == name


def test_of_several_names_the_exported_one_without_an_underscore_is_taken(tmp_path: Path) -> None:
    others = [(name, binding, FUNCTION, 0x100, 0x20) for name, binding in (("internal", LOCAL), ("__alpha", GLOBAL))]
    assert read(tmp_path, [*others, ALPHA]).name(0x110) == "alpha"


@pytest.mark.parametrize("part", ["", ".cold", ".part.0", ".constprop.3", ".isra.0.cold", ".lto_priv.2", "@@GLIBC_2.2"])
def test_parts_of_a_function_have_its_name(tmp_path: Path, part: str) -> None:
    assert read(tmp_path, [(f"alpha{part}", LOCAL, FUNCTION, 0x100, 0x20)]).name(0x100) == "alpha"


def test_the_build_id_is_told(tmp_path: Path) -> None:
    assert read(tmp_path, [ALPHA]).build_id == "abcd"


def test_a_file_without_symbols_has_no_names(tmp_path: Path) -> None:
    assert read(tmp_path, []).name(0x100) == ""


@pytest.mark.parametrize("content", [b"#!/bin/sh\n" * 9, b"\x7fELF\x01\x01" + bytes(90), b"\x7fELF"])
def test_other_files_are_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "other"
    path.write_bytes(content)
    with pytest.raises(ValueError, match="ELF"):
        ElfSymbols.read(path)


def test_damaged_files_are_refused_or_read_as_far_as_they_go(tmp_path: Path) -> None:
    path = tmp_path / "damaged.so"
    intact = elf([ALPHA, ("beta", GLOBAL, FUNCTION, 0x200, 0x40)])
    generator = random.Random(5)
    for _ in range(300):
        damaged = bytearray(intact[: generator.randrange(1, len(intact) + 1)])
        for _ in range(generator.randrange(8)):
            damaged[generator.randrange(len(damaged))] = generator.randrange(256)
        path.write_bytes(damaged)
        try:
            symbols = ElfSymbols.read(path)
        except ValueError:
            continue
        symbols.name(0x100)
        symbols.name(0x210)
