"""Machine code of a kernel as text, with where each instruction comes from.

    .file 1 "/home/me/softmax.py"
    .loc 1 16 14 "scale_rows" @ 1 23 4 "softmax" ptx 120
    /*02b0*/ S2UR UR5, SR_CgaCtaId ;

A `.loc` holds until the next one: file, line, column and function of the place, then after each `@` of where it was
inlined, then the line of the PTX. What is unknown is left out; the column is 0 then.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from bragg.code.source_place import CallChain, SourcePlace

# Since sm_70.
INSTRUCTION_BYTES = 16

_FILE = re.compile(r'\.file (\d+) "(.*)"')
_PLACE = re.compile(r'(\d+) (\d+) (\d+)(?: "([^"]*)")?')
_PTX = re.compile(r" ?ptx (\d+)$")
_INSTRUCTION = re.compile(r"/\*([0-9a-f]+)\*/ ?(.*)")


class Instruction(NamedTuple):
    """One instruction.

    Attributes:
        offset_bytes: From the beginning of the kernel's code.
        text: As the disassembler writes it; empty without one.
        chain: Where it comes from.
        ptx_line: Line of the PTX, from 1; 0 when unknown.
    """

    offset_bytes: int
    text: str
    chain: CallChain
    ptx_line: int


def format_listing(code: Sequence[Instruction]) -> str:
    """The text of instructions, which are ordered by offset."""
    files = {file: number for number, file in enumerate(dict.fromkeys(p.file for i in code for p in i.chain), 1)}
    lines = [f'.file {number} "{file}"' for file, number in files.items()]
    last = ""
    for instruction in code:
        directive = _directive(instruction, files)
        if directive != last:
            lines.append(directive)
            last = directive
        lines.append(f"/*{instruction.offset_bytes:04x}*/ {instruction.text}".rstrip())
    return "".join(f"{line}\n" for line in lines)


def parse_listing(text: str) -> list[Instruction]:
    """The instructions of a listing; lines that are none of it are passed over."""
    files: dict[str, str] = {}
    chain: CallChain = ()
    ptx_line = 0
    code = []
    for line in text.splitlines():
        if line.startswith(".loc"):
            chain, ptx_line = _parse_directive(line, files)
        elif match := _INSTRUCTION.match(line):
            code.append(Instruction(int(match[1], 16), match[2], chain, ptx_line))
        elif match := _FILE.match(line):
            files[match[1]] = match[2]
    return code


def _directive(instruction: Instruction, files: dict[str, int]) -> str:
    places = " @ ".join(_place_text(place, files) for place in instruction.chain)
    ptx = f"ptx {instruction.ptx_line}" if instruction.ptx_line else ""
    return " ".join(filter(None, (".loc", places, ptx)))


def _place_text(place: SourcePlace, files: dict[str, int]) -> str:
    function = f' "{place.function}"' if place.function else ""
    return f"{files[place.file]} {place.line} {place.column}{function}"


def _parse_directive(line: str, files: dict[str, str]) -> tuple[CallChain, int]:
    ptx = _PTX.search(line)
    places = _PLACE.finditer(line, 0, ptx.start() if ptx else len(line))
    chain = tuple(
        SourcePlace(files.get(match[1], ""), int(match[2]), int(match[3]), match[4] or "") for match in places
    )
    return chain, int(ptx[1]) if ptx else 0
