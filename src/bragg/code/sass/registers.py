"""Registers that an instruction of a listing reads and writes, for NVIDIA GPUs from sm_70 on.

Source: listings of nvdisasm 12.8 for kernels of Triton on sm_80, sm_90 and sm_100. An opcode that is not known writes
its first operand.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple


class Effects(NamedTuple):
    """What an instruction does to registers: `R4`, `UR4`, `P0`, `UP0`; those that are constant are left out.

    Attributes:
        opcode: Without the guard: `LDG.E.128`.
        reads: Registers that it reads, its guard among them.
        writes: Registers that it writes.
        is_guarded: Whether a predicate decides, so that what was there before may stay.
        target: Offset in bytes that it branches to; None: it does not, or that is not known.
    """

    opcode: str
    reads: frozenset[str]
    writes: frozenset[str]
    is_guarded: bool
    target: int | None


_GUARD = re.compile(r"@!?(U?P\d|U?PT)\s+")
_REGISTER = re.compile(r"(?<![\w.])(U?R|U?P)(\d+)(?:\.(64|H0_H0|H1_H1|\w+))?")
_TARGET = re.compile(r"0x([0-9a-f]+)\s*$")
# Without a result in a register.
_NO_RESULT = re.compile(
    r"ST[GSL]?\b|STSM|STTM|RED\b|REDG|BAR|DEPBAR|LDGSTS|LDGDEPBAR|BRA|BRX|EXIT|RET|CALL|JMP|MEMBAR|WARP|NANOSLEEP|ERRBAR|CCTL|"
    r"UTMA|UBLK|FENCE|NOP|BSYNC|BREAK|YIELD|ARRIVES|SYNCS\.(ARRIVE|EXCH|CCTL)|USETMAXREG|ACQBULK|UTC|KILL|BPT|PREEXIT"
)
_PREDICATE_FIRST = re.compile(r"SHFL|U?LOP3|MATCH|ELECT|ATOM")
_TWO_PREDICATES = re.compile(r"U?[IFDH]SETP|U?PLOP3|U?PSETP|HSETP2")
_WIDTHS = (
    (re.compile(r"^LDS?M?\.16\.M\w+\.4|^LDSM\S*\.4\b"), 4),
    (re.compile(r"^LDSM\S*\.2\b"), 2),
    (re.compile(r"\.128\b"), 4),
    (re.compile(r"\.64\b|\.WIDE\b|^CS2R(?!\.32)|^D(ADD|MUL|FMA|MNMX)|^\w*F2F\.F64|^I2F\.F64"), 2),
    (re.compile(r"^(HMMA|IMMA|QMMA|OMMA)\S*\.F16\b"), 2),
    (re.compile(r"^(HMMA|IMMA|QMMA|OMMA|DMMA)"), 4),
)
_WGMMA = re.compile(r"^[HIQ]GMMA\.64x(\d+)x\d+\.(\w+)")
_TILE_OPERANDS = (4, 2, 4)  # of mma.sync: A, B, C


@lru_cache(maxsize=1 << 16)
def effects_of(text: str) -> Effects:
    """The effects of an instruction.

    Args:
        text: As the disassembler writes it.
    """
    guard = _GUARD.match(text)
    body = text[guard.end() :] if guard else text
    opcode, _, rest = body.strip().rstrip("; ").partition(" ")
    operands = _operands(rest)
    n_results = _n_results(opcode, operands)
    width = _width(opcode)
    writes = {name for operand in operands[:n_results] for name in _names(operand, width)}
    sources = enumerate(operands[n_results:])
    reads = {name for number, operand in sources for name in _read(opcode, operand, number, width)}
    if guard:
        reads |= _names(guard[1], 1)
    target = _TARGET.search(rest) if opcode.startswith("BRA") else None
    return Effects(opcode, frozenset(reads), frozenset(writes), bool(guard), int(target[1], 16) if target else None)


def _operands(rest: str) -> list[str]:
    """Split at the commas that are in no brackets."""
    return [operand.strip() for operand in re.split(r",(?![^\[{]*[\]}])", rest)] if rest else []


def _n_results(opcode: str, operands: list[str]) -> int:
    """How many of the first operands are results."""
    if not operands or _NO_RESULT.match(opcode):
        return 0
    if _TWO_PREDICATES.match(opcode):
        return 2
    first = _is_predicate(operands[0])
    if first and len(operands) > 1 and not _is_predicate(operands[1]) and _PREDICATE_FIRST.match(opcode):
        return 2
    n = 1
    if not first and re.match(r"U?IADD3|U?LEA|VOTE|U?IMAD\.X|VIADD", opcode):  # the carry is a result, too
        while n < min(3, len(operands) - 2) and _is_predicate(operands[n]):
            n += 1
    return n


def _is_predicate(operand: str) -> bool:
    return re.fullmatch(r"!?U?P[\dT]", operand) is not None


def _width(opcode: str) -> int:
    """Registers of the result."""
    if match := _WGMMA.match(opcode):
        return int(match[1]) // (4 if match[2] == "F16" else 2)
    return next((width for pattern, width in _WIDTHS if pattern.search(opcode)), 1)


def _read(opcode: str, operand: str, number: int, width: int) -> set[str]:
    """Registers of a source."""
    if "[" in operand:  # an address; that of 64 bits says so
        inner = {name for match in _REGISTER.finditer(operand) for name in _span(match, 2 if match[3] == "64" else 1)}
        wide = 4 if operand.startswith("gdesc") else 2 if operand.startswith("desc") else 1
        first = _REGISTER.search(operand)
        return inner | (_span(first, wide) if first and first[1] == "UR" else set())
    if re.match(r"HMMA|IMMA|QMMA|OMMA|DMMA", opcode):
        return _names(operand, _TILE_OPERANDS[min(number, 2)])
    if _WGMMA.match(opcode):
        return _names(operand, width if number else 4)
    if opcode.startswith("D") and not opcode.startswith("DEPBAR"):
        return _names(operand, 2)
    if ".WIDE" in opcode:
        return _names(operand, 2 if number == 2 else 1)
    if _NO_RESULT.match(opcode) or opcode.startswith(("ATOM", "MOV.64", "UMOV.64", "UIADD3.64")):
        return _names(operand, width)
    return _names(operand, 1)


def _names(operand: str, width: int) -> set[str]:
    return {name for match in _REGISTER.finditer(operand) for name in _span(match, width)}


def _span(match: re.Match[str], width: int) -> set[str]:
    n = 1 if match[1].endswith("P") else width
    return {f"{match[1]}{int(match[2]) + step}" for step in range(n)}
