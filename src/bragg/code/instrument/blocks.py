"""The basic blocks of a kernel's PTX, and what its statements wait for or begin."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from bragg.code.instrument.barriers import Barriers
from bragg.code.ptx_text import places_of_ptx
from bragg.code.source_place import CallChain

VALUE_MARK = "bragg value"
"""Begins the comment, behind a `mov`, that tells the type of a scope's value: `i32` or `f32`."""


class Activity(Enum):
    """What a statement with effects does; the value is how it is shown."""

    BARRIER_WAIT = "wait for a barrier in memory"
    BARRIER_ARRIVE = "arrive at a barrier in memory"
    TMA_LOAD = "begin a tensor copy to shared memory"
    TMA_STORE = "begin a tensor copy from shared memory"
    TMA_WAIT = "wait for tensor copies"
    COPY_WAIT = "wait for copies to shared memory"
    COPY = "begin copies to shared memory"
    MMA_WAIT = "wait for matrix products"
    MMA = "begin matrix products"
    BARRIER = "wait for other warps"
    ATOMIC = "atomics"
    LOAD = "begin loads from global memory"
    STORE = "stores to global memory"
    SHARED = "shared memory"

    @property
    def is_wait(self) -> bool:
        """Whether a warp does nothing else meanwhile."""
        return self.value.startswith("wait")


# The first that fits counts: inline assembly may hold several.
_ACTIVITIES = tuple(
    (activity, re.compile(pattern))
    for activity, pattern in (
        (Activity.BARRIER_WAIT, r"\bmbarrier\.(try_wait|test_wait)"),
        (Activity.BARRIER_ARRIVE, r"\bmbarrier\."),
        (Activity.TMA_LOAD, r"\bcp\.async\.bulk\.(tensor\.[2-5]d\.)?shared"),
        (Activity.TMA_WAIT, r"\bcp\.async\.bulk\.wait_group"),
        (Activity.TMA_STORE, r"\bcp\.(reduce\.)?async\.bulk\b"),
        (Activity.COPY_WAIT, r"\bcp\.async\.(wait_group|wait_all|mbarrier)"),
        (Activity.COPY, r"\bcp\.async\b"),
        (Activity.MMA_WAIT, r"\bwgmma\.wait_group|\btcgen05\.wait"),
        (Activity.MMA, r"\bwgmma\.|\bmma\.sync|\btcgen05\.(mma|commit)"),
        (Activity.BARRIER, r"\b(bar|barrier)\.(sync|red|arrive|cluster|cta)|\bbar\.warp"),
        (Activity.ATOMIC, r"\b(atom|red)\."),
        (Activity.LOAD, r"\bld\.(\w+\.)*?global"),
        (Activity.STORE, r"\bst\.(\w+\.)*?global"),
        (Activity.SHARED, r"\b(ld|st)\.(\w+\.)*?shared|\bldmatrix|\bstmatrix"),
    )
)
_INTEGERS = re.compile(
    r"\s*(?:@!?%\w+\s+)?(?:add|sub|mul|mad|shl|shr|shf|and|or|xor|not|neg|abs|min|max|bfe|bfi|lop3|prmt|setp|selp|mov|cvt"
    r"|shfl\.sync\.idx)\.(?!.*\bf\d)"
)
_ENTRY = re.compile(r"^\s*(?:\.visible\s+|\.weak\s+)*\.entry\s+([\w$]+)")
_FUNCTION = re.compile(r"^\s*(?:\.visible\s+|\.weak\s+|\.extern\s+)*\.func\b")
_LABEL = re.compile(r"^\s*(\$\w+):")
_BRANCH = re.compile(r"^\s*(?P<guard>@!?%\w+\s+)?(?P<what>bra(?:\.uni)?|brx\S*|ret|exit|trap|call\S*)\b(?P<rest>[^;]*)")
_TARGET = re.compile(r"\$\w+")
_BEGIN_ASSEMBLY, _END_ASSEMBLY = "// begin inline asm", "// end inline asm"
_VALUE = re.compile(rf"\bmov\.b32\s+(%\w+),[^;]*;\s*//\s*{VALUE_MARK} (i32|f32)\b")
_DEBUG_LABELS = ("$L__tmp", "$L__func", "$L__info")


class Value(NamedTuple):
    """What the program gave a scope: `bragg.kernel_scope("load", step)`.

    Attributes:
        register: Holds its 32 bits, and nothing else is ever written to it.
        type: `i32` or `f32`.
    """

    register: str
    type: str


@dataclass
class Statement:
    """An instruction, or a piece of inline assembly.

    Attributes:
        first, last: Its lines in the text, from 0.
        place: Where it comes from.
        activity: What it does, if that has an effect.
        branch: `bra`, `ret` and the like; empty if it does not end a block.
        is_guarded: Whether a predicate decides of the branch.
        target: Label that it branches to.
        value: That it has ready for a scope.
        barrier: In shared memory, that it waits for or lets arrive, as `Barriers` numbers them; None: not known.
        is_integer: It computes an integer, such as an address, from registers.
    """

    first: int
    last: int
    place: CallChain
    activity: Activity | None = None
    branch: str = ""
    is_guarded: bool = False
    target: str = ""
    value: Value | None = None
    barrier: int | None = None
    is_integer: bool = False


@dataclass
class Block:
    """Statements that are executed one after another.

    Attributes:
        labels: Names that it is reached by.
        statements: In order; only the last one may branch.
        in_loop: Whether a branch leads back to it or to before it, from it or from behind it.
    """

    labels: list[str] = field(default_factory=list)
    statements: list[Statement] = field(default_factory=list)
    in_loop: bool = False


@dataclass
class Kernel:
    """The entry function of a text.

    Attributes:
        name: Its symbol.
        lines: Of the whole text.
        entry: Line of its `.entry`.
        body: First line behind its opening brace.
        end: Line of its closing brace.
        blocks: In order.
    """

    name: str
    lines: list[str]
    entry: int
    body: int
    end: int
    blocks: list[Block]


def read_kernel(text: str) -> Kernel:
    """Read the kernel of a text.

    Raises:
        ValueError: It has none or several, calls functions of its own, or is not what compilers write.
    """
    lines = text.splitlines()
    entries = [number for number, line in enumerate(lines) if _ENTRY.match(line)]
    if len(entries) != 1:
        raise ValueError(f"the text has {len(entries)} kernels, not one")
    if any(_FUNCTION.match(line) and not line.lstrip().startswith(".extern") for line in lines):
        raise ValueError("it calls functions that were not inlined")
    entry = entries[0]
    match = _ENTRY.match(lines[entry])
    assert match is not None
    body, end = _braces(lines, entry)
    blocks = _blocks(list(_pieces(lines, body, end, places_of_ptx(text))))
    barriers = Barriers(lines[body:end])
    for block in blocks:
        for statement in block.statements:
            if statement.activity is not None:
                statement.barrier = barriers.used_by("\n".join(lines[statement.first : statement.last + 1]))
    return Kernel(match[1], lines, entry, body, end, blocks)


def _braces(lines: list[str], entry: int) -> tuple[int, int]:
    """The line behind the opening brace, and that of the closing one."""
    depth, body = 0, 0
    for number in range(entry, len(lines)):
        code = lines[number].partition("//")[0]
        if not depth and "{" in code:
            body = number + 1
        depth += code.count("{") - code.count("}")
        if body and not depth:
            return body, number
    raise ValueError("the braces of the kernel do not match")


def _pieces(lines: list[str], body: int, end: int, places: list[CallChain]) -> Iterator[str | Statement]:
    """Labels and statements in order."""
    number = body
    while number < end:
        line = lines[number]
        if line.lstrip().startswith(_BEGIN_ASSEMBLY):
            last = next((n for n in range(number, end) if lines[n].lstrip().startswith(_END_ASSEMBLY)), end - 1)
            inside = "\n".join(lines[number : last + 1])
            place = next((places[n] for n in range(number, last + 1) if places[n]), ())
            value = _VALUE.search(inside)
            yield Statement(number, last, place, _activity(inside), value=Value(*value.groups()) if value else None)
        elif match := _LABEL.match(line):
            last = number
            if not match[1].startswith(_DEBUG_LABELS):
                yield match[1]
        elif _is_instruction(line):
            last = next((n for n in range(number, end) if ";" in lines[n].partition("//")[0]), end - 1)
            yield _instruction(lines, number, last, places[number])
        else:
            last = number
        number = last + 1


def _is_instruction(line: str) -> bool:
    code = line.partition("//")[0].strip()
    return bool(code) and code[0] not in ".{}()"


def _instruction(lines: list[str], first: int, last: int, place: CallChain) -> Statement:
    code = " ".join(line.partition("//")[0] for line in lines[first : last + 1])
    if match := _BRANCH.match(code):
        target = _TARGET.search(match["rest"])
        return Statement(
            first, last, place, None, match["what"].partition(".")[0], bool(match["guard"]), target[0] if target else ""
        )
    return Statement(first, last, place, _activity(code), is_integer=bool(_INTEGERS.match(code)))


def _activity(code: str) -> Activity | None:
    return next((activity for activity, pattern in _ACTIVITIES if pattern.search(code)), None)


def _blocks(pieces: list[str | Statement]) -> list[Block]:
    blocks = [Block()]
    for piece in pieces:
        if isinstance(piece, str):
            if blocks[-1].statements:
                blocks.append(Block())
            blocks[-1].labels.append(piece)
            continue
        if piece.branch == "call":
            raise ValueError("it calls functions that were not inlined")
        if blocks[-1].statements and blocks[-1].statements[-1].branch:
            blocks.append(Block())
        blocks[-1].statements.append(piece)
    number_of = {label: number for number, block in enumerate(blocks) for label in block.labels}
    for number, block in enumerate(blocks):
        for statement in block.statements:
            first = number_of.get(statement.target, number + 1)
            for each in blocks[first : number + 1]:
                each.in_loop = True
    return blocks
