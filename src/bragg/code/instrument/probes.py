"""Counts in the PTX of a kernel: how it accesses memory, where it branches, and what it stores.

Each site has counters of its own in the GPU's memory, u64, to which one lane of a warp adds:

| site | 0 | 1 | 2 | 3 |
|---|---|---|---|---|
| access to global memory | warps that came by | lanes that access | sectors of 32 bytes that they touch | |
| conditional branch | warps that came by | lanes that branch | | |
| store of floating-point numbers | warps that came by | greatest magnitude, its bits | first that is not finite | |

The first number that is not finite is told as `1 << 63 | block << 32 | warp << 24 | passage`; passages are counted from
0 to 2^24 - 1. The program sets where counters are in `CONTROL`: u64 address, and at byte 24 the u32 mask of the blocks
that count, whose number has no bit of it. Other blocks execute a copy of the code without probes.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from bragg.code.instrument.blocks import Kernel, Statement
from bragg.code.instrument.rewriting import BLOCK_NUMBER, PLAIN_LABEL, TO_PLAIN_CODE, declared, indented, plain_code
from bragg.code.source_place import CallChain, user_place

COUNTERS = 4
"""Of a site, 8 bytes each."""


class Probe(Enum):
    """What can be counted; the value is its name on the command line."""

    ACCESSES = "accesses"
    BRANCHES = "branches"
    VALUES = "values"


class FloatType(Enum):
    """Floating-point numbers that are looked at: bits of one, and those of infinity."""

    F16 = (16, 0x7C00)
    BF16 = (16, 0x7F80)
    F32 = (32, 0x7F800000)


@dataclass(frozen=True)
class Site:
    """A place that counts.

    Attributes:
        probe: What it counts.
        does: What the program does there.
        place: Where it comes from.
        access_bytes: That each lane accesses at once; 0: no access.
        type: Of the numbers that are stored; None: no store that is looked at.
        is_back: The branch begins another turn of a loop.
    """

    probe: Probe
    does: str
    place: CallChain
    access_bytes: int = 0
    type: FloatType | None = None
    is_back: bool = False


@dataclass(frozen=True)
class Probed:
    """A kernel's PTX with probes.

    Attributes:
        text: The PTX.
        sites: In the order of their counters.
    """

    text: str
    sites: Sequence[Site]


# `@%p1 ld.global.v4.b32 {…}, [ %rd1 + 0 ];`, `cp.async.cg.shared.global [ %r1 + 0 ], [ %rd1 + 0 ], 0x10, %r2;`
_ACCESS = re.compile(
    r"(?:@(?P<negated>!?)(?P<guard>%\w+)\s+)?(?P<what>ld|st|atom|red|cp\.async)\.(?P<before>(?:[\w:]+\.)*?)global\b"
    r"(?P<after>[\w.:]*)(?P<operands>[^;]*);"
)
_ADDRESS = re.compile(r"\[\s*(%rd\w*)\s*(?:\+\s*(-?\d+))?\s*\]")
_WIDTH = re.compile(r"(?:\.v(?P<lanes>[248]))?\.[busf](?P<bits>8|16|32|64|128)\b")
_COPY_SIZE = re.compile(r"\]\s*,\s*(?P<most>0x[0-9a-f]+|\d+)\s*(?:,\s*(?P<own>%\w+))?")
_VALUES = re.compile(r"%r\d+\b")
_GUARDED_BRANCH = re.compile(r"@(?P<negated>!?)(?P<guard>%\w+)\s+bra")
_DOES = {"ld": "loads", "st": "stores", "atom": "atomics", "red": "atomics", "cp.async": "copies to shared memory"}

_REGISTERS = [
    "\t.reg .b32 \t%bragg_w<12>;",
    "\t.reg .b64 \t%bragg_d<6>;",
    "\t.reg .pred \t%bragg_on, %bragg_p, %bragg_q, %bragg_rest;",
]
_PROLOGUE = [
    "mov.u64 %bragg_d0, bragg_control;",
    "ld.global.b64 %bragg_d1, [%bragg_d0];",
    "ld.global.b32 %bragg_w2, [%bragg_d0+24];",
    "and.b32 %bragg_w2, %bragg_w2, %bragg_w4;",
    "setp.ne.u64 %bragg_on, %bragg_d1, 0;",
    *TO_PLAIN_CODE,
]
# %bragg_p: whether a lane takes part. %bragg_w0 becomes the warp's active lanes, %bragg_w1 those that take part, and
# %bragg_q whether a lane is the one that adds.
_LANES = [
    "activemask.b32 %bragg_w0;",
    "vote.sync.ballot.b32 %bragg_w1, %bragg_p, %bragg_w0;",
    "mov.u32 %bragg_w2, %lanemask_lt;",
    "and.b32 %bragg_w3, %bragg_w2, %bragg_w0;",
    "setp.eq.and.u32 %bragg_q, %bragg_w3, 0, %bragg_on;",
    "@%bragg_q red.global.add.u64 [%bragg_d1+{0}], 1;",
]
_COUNT_LANES = [
    "popc.b32 %bragg_w4, %bragg_w1;",
    "cvt.u64.u32 %bragg_d2, %bragg_w4;",
    "@%bragg_q red.global.add.u64 [%bragg_d1+{1}], %bragg_d2;",
]
# Of the lanes with one sector, the lowest stands for it.
_COUNT_SECTORS = [
    "add.s64 %bragg_d3, {address}, {offset};",
    "shr.u64 %bragg_d3, %bragg_d3, 5;",
    "mov.u32 %bragg_w5, 0;",
    "@%bragg_p match.any.sync.b64 %bragg_w5, %bragg_d3, %bragg_w1;",
    "and.b32 %bragg_w5, %bragg_w5, %bragg_w2;",
    "setp.eq.and.u32 %bragg_p, %bragg_w5, 0, %bragg_p;",
    "vote.sync.ballot.b32 %bragg_w5, %bragg_p, %bragg_w0;",
    "popc.b32 %bragg_w5, %bragg_w5;",
    "cvt.u64.u32 %bragg_d3, %bragg_w5;",
    "@%bragg_q red.global.add.u64 [%bragg_d1+{2}], %bragg_d3;",
]
# %bragg_w6 becomes the greatest magnitude of a lane: as bits without the sign, it is ordered like the numbers.
_MAGNITUDE = {
    32: ["and.b32 %bragg_w7, {value}, 0x7fffffff;", "max.u32 %bragg_w6, %bragg_w6, %bragg_w7;"],
    16: [
        "and.b32 %bragg_w7, {value}, 0x7fff;",
        "max.u32 %bragg_w6, %bragg_w6, %bragg_w7;",
        "bfe.u32 %bragg_w7, {value}, 16, 15;",
        "max.u32 %bragg_w6, %bragg_w6, %bragg_w7;",
    ],
}
_TELL_VALUES = [
    "and.pred %bragg_p, %bragg_p, %bragg_on;",
    "cvt.u64.u32 %bragg_d2, %bragg_w6;",
    "@%bragg_p red.global.max.u64 [%bragg_d1+{1}], %bragg_d2;",
    "setp.ge.and.u32 %bragg_p, %bragg_w6, {infinity}, %bragg_p;",
    "cvt.u64.u32 %bragg_d2, %bragg_w8;",
    "shl.b64 %bragg_d2, %bragg_d2, 32;",
    "mov.u32 %bragg_w7, %tid.x;",
    "shr.u32 %bragg_w7, %bragg_w7, 5;",
    "shl.b32 %bragg_w7, %bragg_w7, 24;",
    "or.b32 %bragg_w7, %bragg_w7, {passage};",
    "cvt.u64.u32 %bragg_d3, %bragg_w7;",
    "or.b64 %bragg_d2, %bragg_d2, %bragg_d3;",
    "or.b64 %bragg_d2, %bragg_d2, 0x8000000000000000;",
    "@%bragg_p atom.global.cas.b64 %bragg_d3, [%bragg_d1+{2}], 0, %bragg_d2;",
    "add.u32 {passage}, {passage}, 1;",
    "min.u32 {passage}, {passage}, 0xffffff;",
]


def add_probes(kernel: Kernel, wanted: Collection[Probe], types: Mapping[int, FloatType]) -> Probed:
    """Add probes to a kernel.

    Args:
        kernel: The kernel.
        wanted: What is counted.
        types: Types of the numbers that are stored, by line of the user's source.

    Raises:
        ValueError: Its code cannot be copied, or it has nothing of what is counted.
    """
    sites: list[Site] = []
    before: dict[int, list[str]] = defaultdict(list)
    for statement, code, is_back in _statements(kernel):
        for site, lines in _sites(statement, code, wanted, types, is_back=is_back):
            at = {str(counter): 8 * (len(sites) * COUNTERS + counter) for counter in range(COUNTERS)}
            passage = f"%bragg_n{len(sites)}"
            before[statement.first] += indented([_filled(line, {**at, "passage": passage}) for line in lines])
            sites.append(site)
    if not sites:
        raise ValueError("it has nothing of what is counted")
    counted = [number for number, site in enumerate(sites) if site.probe is Probe.VALUES]
    begin = [f"mov.u32 %bragg_n{number}, 0;" for number in counted]
    begin += [*BLOCK_NUMBER, "mov.u32 %bragg_w8, %bragg_w4;", *_PROLOGUE]
    statements = [statement for block in kernel.blocks for statement in block.statements]
    before[statements[0].first][:0] = indented(begin)
    registers = [*_REGISTERS, f"\t.reg .b32 \t%bragg_n<{len(sites)}>;"]
    after = {kernel.body - 1: registers, statements[-1].last: [f"{PLAIN_LABEL}:", *plain_code(kernel)]}
    return Probed(declared(kernel, before, after), sites)


def _statements(kernel: Kernel) -> Iterator[tuple[Statement, str, bool]]:
    """Statements with their code, and whether they branch back."""
    block_of = {label: number for number, block in enumerate(kernel.blocks) for label in block.labels}
    for number, block in enumerate(kernel.blocks):
        for statement in block.statements:
            lines = kernel.lines[statement.first : statement.last + 1]
            code = " ".join(line.partition("//")[0] for line in lines)
            yield statement, code, block_of.get(statement.target, number + 1) <= number


def _sites(
    statement: Statement, code: str, wanted: Collection[Probe], types: Mapping[int, FloatType], *, is_back: bool
) -> Iterator[tuple[Site, list[str]]]:
    """What a statement counts, and the code before it."""
    if Probe.BRANCHES in wanted and (branch := _GUARDED_BRANCH.search(code)) and statement.branch == "bra":
        does = "another turn of the loop" if is_back else "branch"
        site = Site(Probe.BRANCHES, does, statement.place, is_back=is_back)
        yield site, [_taking_part(branch), *_LANES, *_COUNT_LANES]
        return
    accesses = list(_ACCESS.finditer(code))
    if len(accesses) != 1:
        return
    (access,) = accesses
    addresses = [] if "bulk" in access["before"] else _ADDRESS.findall(access["operands"])
    if not addresses:
        return
    address, offset = addresses[-1]
    if Probe.ACCESSES in wanted:
        counted = [_filled(line, {"address": address, "offset": offset or "0"}) for line in _COUNT_SECTORS]
        site = Site(Probe.ACCESSES, _DOES[access["what"]], statement.place, _bytes_of(access))
        yield site, [_taking_part(access), *_LANES, *_COUNT_LANES, *counted]
    place = user_place(statement.place)
    kind = types.get(place.line) if place else None
    if Probe.VALUES in wanted and access["what"] == "st" and kind is not None:
        bits, infinity = kind.value
        values = _VALUES.findall(access["operands"].rpartition("]")[2])
        if values and _bytes_of(access) >= 4:
            looked_at = [line.replace("{value}", value) for value in values for line in _MAGNITUDE[bits]]
            told = [_filled(line, {"infinity": hex(infinity)}) for line in _TELL_VALUES]
            site = Site(Probe.VALUES, "stores", statement.place, type=kind)
            yield site, [_taking_part(access), *_LANES, "mov.u32 %bragg_w6, 0;", *looked_at, *told]


def _taking_part(match: re.Match[str]) -> str:
    """Sets %bragg_p to whether a lane executes the statement."""
    if match["guard"]:
        return f"{'not' if match['negated'] else 'mov'}.pred %bragg_p, {match['guard']};"
    size = _COPY_SIZE.search(match["operands"]) if match["what"] == "cp.async" else None
    # A copy of 0 bytes writes zeros and reads nothing.
    return f"setp.ne.u32 %bragg_p, {size['own']}, 0;" if size and size["own"] else "setp.eq.u32 %bragg_p, 0, 0;"


def _bytes_of(access: re.Match[str]) -> int:
    """That each lane accesses."""
    if access["what"] == "cp.async":
        size = _COPY_SIZE.search(access["operands"])
        return int(size["most"], 0) if size else 0
    width = _WIDTH.search(access["after"])
    return int(width["lanes"] or 1) * int(width["bits"]) // 8 if width else 0


def _filled(line: str, values: Mapping[str, object]) -> str:
    for name, value in values.items():
        line = line.replace(f"{{{name}}}", str(value))
    return line
