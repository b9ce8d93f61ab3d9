"""The machine code of a kernel inside another one: blocks without clocks execute what the kernel itself executes.

ptxas allocates registers and orders instructions for a whole function, so a second copy of the code in the PTX is
another program than the first one. Here ptxas leaves room instead, and the kernel's code is put there. It branches
relative to its place alone, finds its parameters where they are, and its registers are free: nothing is live there.
It ends the warp: nothing may follow, since its last stores may still read registers that no scoreboard guards.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple

from bragg.code.instrument.assembling import Binary
from bragg.code.sass.disassembler import Listing

FILLER = "pmevent 7;"
"""A statement that becomes one instruction, which is found again."""

_FILLER_OPCODE = "PMTRIG"
_NOTHING = "NOP ;"
_INSTRUCTION_BYTES = 16
# The start of a kernel is aligned so; its loops lie in the lines of the instruction cache as they did.
_ALIGNMENT = 128
_LEAD = 2
# Bits 105 to 109 of an instruction, cycles and yielding, and 116 to 121, scoreboards that it waits for: 15, all six.
# Source: Jia et al., "Dissecting the NVIDIA Volta GPU Architecture via Microbenchmarking", 2018, section 2.
_TIMING, _DRAIN = 0x1F << 41, (0x3F << 52) | (0xF << 41)
# What depends on its place, on constants that ptxas keeps beside a kernel, or leaves some warps with few registers.
_PLACED = re.compile(r"\b(CALL|RET|JMP|JMX|BRX|BRXU|LEPC|USETMAXREG|LDCU?\.\w*IL)\b|\d+@|c\[0x[1-9a-f]")
# In names of sections: ptxas adds it for Blackwell.
_INTERMEDIATE = "merc"
_LAST_HEX = re.compile(r"0x([0-9a-f]+)(?=\D*$)")
# Of an ELF header: where sections begin, how many there are, which one names them. Source: System V ABI.
_SECTIONS = struct.Struct("<40xQ12xHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
# In .nv.info, as ptxas 12.8 writes it: u8 4, u8 attribute, u16 8, u32 symbol, u32 value.
_REGISTERS = b"\x04\x2f\x08\x00"


class _Section(NamedTuple):
    """A section of a cubin.

    Attributes:
        offset, size: In the file.
        flags: With the number of barriers.
    """

    offset: int
    size: int
    flags: int


def room_for(plain: Binary, symbol: str) -> list[str]:
    """Lines of PTX in whose place the machine code of a kernel can be put.

    Raises:
        ValueError: It has no such kernel.
    """
    size = _text(_sections(plain.cubin), symbol).size
    return [f"\t{FILLER}"] * (size // _INSTRUCTION_BYTES + _ALIGNMENT // _INSTRUCTION_BYTES + _LEAD) + ["\tret;"]


def with_code_of(plain: Binary, code: Listing, clocked: Binary, listing: Listing, symbol: str) -> Binary:
    """A kernel with clocks, and in its room the machine code of the kernel without them.

    Args:
        plain: Without clocks.
        code: Its listing.
        clocked: With clocks, and with room.
        listing: Its listing.
        symbol: Of the function.

    Raises:
        ValueError: The code depends on its place, or the room is not where it can be used.
    """
    sections, others = _sections(plain.cubin), _sections(clocked.cubin)
    own, text = _text(sections, symbol), _text(others, symbol)
    if any(_INTERMEDIATE in name for name in others):
        raise ValueError("it has an intermediate code, too, which the driver may assemble anew")
    if any(_PLACED.search(each) for each in code[symbol].values()):
        raise ValueError("its machine code depends on its place")
    if _size(sections, f".rela.text.{symbol}") or _size(sections, f".rel.text.{symbol}"):
        raise ValueError("its machine code has relocations")
    if own.flags != text.flags or plain.stack_bytes or clocked.stack_bytes:
        raise ValueError("it has barriers or a stack of its own")
    room = [offset for offset, each in listing[symbol].items() if each.startswith(_FILLER_OPCODE)]
    start = -(-(room[0] + _LEAD * _INSTRUCTION_BYTES) // _ALIGNMENT) * _ALIGNMENT if room else 0
    is_whole = room == list(range(room[0], room[-1] + 1, _INSTRUCTION_BYTES)) if room else False
    if not is_whole or start + own.size > room[-1] + _INSTRUCTION_BYTES:
        raise ValueError("ptxas kept no room")
    machine_code = plain.cubin[own.offset : own.offset + own.size]
    image = bytearray(clocked.cubin)
    idle = _idle(machine_code, code[symbol])
    lead = (start - room[0]) // _INSTRUCTION_BYTES
    image[text.offset + room[0] : text.offset + start + own.size] = idle * lead + machine_code
    registers = max(plain.registers, clocked.registers)
    _set_registers(image, others, clocked.registers, registers)
    return replace(clocked, cubin=bytes(image), registers=registers)


def is_inside(code: Mapping[int, str], whole: Mapping[int, str]) -> bool:
    """Whether a kernel's code stands in that of another one, instruction for instruction.

    Args:
        code: Text of each instruction by offset.
        whole: The same of the other kernel.
    """
    first = [offset for offset in whole if offset % _ALIGNMENT == 0 and offset]
    return any(all(_same(text, whole.get(start + at, ""), start) for at, text in code.items()) for start in first)


def _same(text: str, other: str, shift: int) -> bool:
    if text == other:
        return True
    return _LAST_HEX.sub(lambda target: hex(int(target[1], 16) + shift), text) == other


def _idle(machine_code: bytes, code: Mapping[int, str]) -> bytes:
    """An instruction that waits until nothing is under way: the kernel expects its registers to be at rest."""
    found = max((offset for offset, text in code.items() if text == _NOTHING), default=None)
    if found is None:
        raise ValueError("its machine code ends without room")
    low, high = struct.unpack_from("<QQ", machine_code, found)
    return struct.pack("<QQ", low, high & ~_TIMING | _DRAIN)


def _set_registers(image: bytearray, sections: Mapping[str, _Section], before: int, registers: int) -> None:
    info = sections[".nv.info"]
    at = image.find(_REGISTERS, info.offset, info.offset + info.size)
    if at < 0 or struct.unpack_from("<I", image, at + 8)[0] != before:
        raise ValueError("its number of registers was not found")
    struct.pack_into("<I", image, at + 8, registers)


def _text(sections: Mapping[str, _Section], symbol: str) -> _Section:
    if f".text.{symbol}" not in sections:
        raise ValueError(f"it has no kernel {symbol}")
    return sections[f".text.{symbol}"]


def _size(sections: Mapping[str, _Section], name: str) -> int:
    return sections[name].size if name in sections else 0


def _sections(image: bytes) -> dict[str, _Section]:
    return dict(_named_sections(image))


def _named_sections(image: bytes) -> Iterator[tuple[str, _Section]]:
    first, count, names = _SECTIONS.unpack_from(image)
    rows = [_SECTION.unpack_from(image, first + _SECTION.size * number) for number in range(count)]
    strings = rows[names][4]
    for name, _, flags, _, offset, size, *_ in rows:
        yield image[strings + name : image.index(b"\0", strings + name)].decode(), _Section(offset, size, flags)
