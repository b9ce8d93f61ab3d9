"""The machine code of a kernel inside another one: blocks without clocks execute what the kernel itself executes.

ptxas allocates registers and orders instructions for a whole function, so a second copy of the code in the PTX is
another program than the first one. Here ptxas leaves room instead, and the kernel's code is put there. It branches
relative to its place alone, finds its parameters where they are, and its registers are free: nothing is live there.
Where it ends a warp, it goes on behind the room instead. What that needs of registers is restored there, if it is but
constants, such as the descriptor of memory.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple

from bragg.code.disassembler import Listing
from bragg.code.instrument.assembling import Binary
from bragg.code.sass_registers import effects_of

__all__ = ["FILLER", "Placed", "fillers_for", "is_inside", "with_code_of"]

FILLER = "pmevent 7;"
"""A statement that becomes one instruction, which is found again."""

_FILLER_OPCODE = "PMTRIG"
_NOTHING = "NOP ;"
_INSTRUCTION_BYTES = 16
# The start of a kernel is aligned so; its loops lie in the lines of the instruction cache as they did.
_ALIGNMENT = 128
_LEAD, _TAIL = 2, 8
# Bits 105 to 109 of an instruction, cycles and yielding, and 116 to 121, scoreboards that it waits for: 15, all six.
# Source: Jia et al., "Dissecting the NVIDIA Volta GPU Architecture via Microbenchmarking", 2018, section 2.
_TIMING, _SCOREBOARDS = 0x1F << 41, 0x3F << 52
_DRAIN = _SCOREBOARDS | 0xF << 41
# What depends on its place, on constants that ptxas keeps beside a kernel, or leaves some warps with few registers.
_PLACED = re.compile(r"\b(CALL|RET|JMP|JMX|BRX|BRXU|LEPC|USETMAXREG|LDCU?\.\w*IL)\b|\d+@|c\[0x[1-9a-f]")
# In names of sections: ptxas adds it for Blackwell.
_INTERMEDIATE = "merc"
_EXIT = "EXIT ;"
_CONSTANT = re.compile(r"(ULDC|LDCU)(\.64)? UR\d+, c\[0x0\]\[0x[0-9a-f]+\] ;$")
_UNDESCRIBED = re.compile(r"(@!?U?P\d )?(LDG|STG|LD|ST)\b(?!.*desc\[)")
_STRAIGHT = re.compile(r"(?!BRA|BRX|JMP|CALL|RET|BSSY|BSYNC|BREAK|KILL)")
# 5 cycles, as ptxas has it for branches.
_BRANCH_TIMING = 0x15 << 41
# Bits 12 to 15 of an instruction, its predicate, and 64 to 81, the upper part of what a branch goes over.
_GUARD, _FAR = 0xF << 12, 0x3FFFF
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


class Placed(NamedTuple):
    """A kernel's machine code in that of another one.

    Attributes:
        binary: With both.
        start: Offset of the code in the function.
        end: Where it goes on in place of its exits.
    """

    binary: Binary
    start: int
    end: int


def fillers_for(plain: Binary, symbol: str) -> list[str]:
    """Lines of PTX in whose place the machine code of a kernel can be put.

    Raises:
        ValueError: It has no such kernel.
    """
    size = _text(_sections(plain.cubin), symbol).size
    return [f"\t{FILLER}"] * ((size + _ALIGNMENT) // _INSTRUCTION_BYTES + _LEAD + _TAIL)


def with_code_of(plain: Binary, code: Listing, clocked: Binary, listing: Listing, symbol: str) -> Placed:
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
    if not is_whole or start + own.size + _TAIL * _INSTRUCTION_BYTES > room[-1] + _INSTRUCTION_BYTES:
        raise ValueError("ptxas kept no room")
    machine_code = bytearray(plain.cubin[own.offset : own.offset + own.size])
    _lead_exits(machine_code, code[symbol], own.size)
    image = bytearray(clocked.cubin)
    idle = _idle(machine_code, code[symbol])
    again = b"".join(
        bytes(image[text.offset + offset : text.offset + offset + _INSTRUCTION_BYTES])
        for offset in _constants_for(listing[symbol], room[0], room[-1] + _INSTRUCTION_BYTES)
    )
    lead = (start - room[0]) // _INSTRUCTION_BYTES
    inside = idle * lead + machine_code + idle * _LEAD + again
    size = room[-1] + _INSTRUCTION_BYTES - room[0]
    inside += idle * ((size - len(inside)) // _INSTRUCTION_BYTES)
    if len(inside) != size:
        raise ValueError("ptxas kept too little room")
    image[text.offset + room[0] : text.offset + room[0] + size] = inside
    registers = max(plain.registers, clocked.registers)
    _set_registers(image, others, clocked.registers, registers)
    return Placed(replace(clocked, cubin=bytes(image), registers=registers), start, start + own.size)


def is_inside(code: Mapping[int, str], whole: Mapping[int, str], placed: Placed) -> bool:
    """Whether a kernel's code stands in that of another one, instruction for instruction, its exits apart.

    Args:
        code: Text of each instruction by offset.
        whole: The same of the other kernel.
        placed: Where it should be.
    """
    return all(_same(text, whole.get(placed.start + at, ""), placed) for at, text in code.items())


def _same(text: str, other: str, placed: Placed) -> bool:
    if text.endswith(_EXIT):
        return text.removesuffix(_EXIT) + f"BRA {placed.end:#x} ;" == other
    return text == other or _LAST_HEX.sub(lambda at: hex(int(at[1], 16) + placed.start), text) == other


def _lead_exits(machine_code: bytearray, code: Mapping[int, str], end: int) -> None:
    """Branch to the end of the code where it ends a warp.

    How a branch is encoded, shows the one to itself that ptxas puts behind each kernel: over -4 words, from bit 34 on,
    or, since sm_90, their lowest byte at bit 16 and the others from bit 34 on. Whoever calls this sees in a listing
    whether that was right.
    """
    own = next((at for at, text in code.items() if text == f"BRA {at:#x} ;"), None)
    exits = [at for at, text in code.items() if text.endswith(_EXIT)]
    if own is None or not exits:
        raise ValueError("its machine code does not end as ptxas ends kernels")
    low, high = struct.unpack_from("<QQ", machine_code, own)
    byte = low >> 16 & 0xFF
    if (low >> 34, byte) not in ((0x3FFFFFFF, 0xFC), (0x3FFFFFFC, 0)) or high & _FAR != _FAR:
        raise ValueError("its branches are encoded in a way that is not known")
    for at in exits:
        guard = struct.unpack_from("<Q", machine_code, at)[0] & _GUARD
        words = (end - at - _INSTRUCTION_BYTES) // 4
        over = (words >> 8) << 34 | (words & 0xFF) << 16 if byte else words << 34
        branch = over | low & 0xFF00FFFF & ~_GUARD | guard
        struct.pack_into("<QQ", machine_code, at, branch, high & ~(_FAR | _TIMING) | _BRANCH_TIMING | _SCOREBOARDS)


def _constants_for(code: Mapping[int, str], start: int, end: int) -> list[int]:
    """Offsets of the instructions before the room that what follows it needs, all of which load constants.

    Raises:
        ValueError: It needs something else, or does not follow in a line.
    """
    needed, known = set[str](), set[str]()
    for at in range(end, max(code) + 1, _INSTRUCTION_BYTES):
        if _UNDESCRIBED.match(code[at]):
            raise ValueError("its listing does not show the descriptor of memory")
        each = effects_of(code[at])
        needed |= each.reads - known
        known |= frozenset() if each.is_guarded else each.writes
        if each.opcode.startswith("EXIT") and not each.is_guarded:
            break
        if each.target is not None or not _STRAIGHT.match(each.opcode):
            raise ValueError("what follows the room is not in a line")
    before = {at: effects_of(text) for at, text in code.items() if at < start}
    found = [at for at, each in before.items() if each.writes & needed and _CONSTANT.match(code[at])]
    writers = [at for at, each in before.items() if each.writes & needed]
    if found != writers or needed - {name for at in found for name in before[at].writes}:
        raise ValueError(f"what follows the room needs {', '.join(sorted(needed))}")
    return found


def _idle(machine_code: bytes | bytearray, code: Mapping[int, str]) -> bytes:
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
