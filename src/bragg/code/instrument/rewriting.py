"""PTX that stores clock readings: a header for each warp, and a frame for each passage of a block.

Every number of the layout that a reader needs stands here. A warp writes, with one lane:

| bytes | header of 64 bytes |
|---|---|
| 0, 8 | u64 global time, ns, and clock of the multiprocessor at the start |
| 16, 24 | the same at the end |
| 32 | u32 `MAGIC` |
| 36, 40 | u32 multiprocessor, and block of the launch, counted along x, y, z |
| 44 | u32 bytes of frames that were due, also those for which there was no room |
| 48 | u32 cycles between two readings with nothing between them: what a reading costs |
| 52 | u32 launches in which the warp has ended, since this memory was zero |

and to memory of its own the frames that `storing` describes. Where they go is not compiled in: the program sets
`CONTROL`, which is zero at first, and then nothing is stored.

Where only some blocks have frames, the other ones may execute code without clocks, `rest`, and have no headers.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bragg.code.instrument.blocks import Kernel
from bragg.code.instrument.segments import Frame, Selection, frames_of
from bragg.code.instrument.storing import IN_GLOBAL_MEMORY, WARP_BYTES, Store

CONTROL = "bragg_control"
"""Symbol: u64 address of headers, u64 of frames; u32 masks of blocks with headers, and with frames; u32 count of
first blocks; u32 with a bit for each warp that stores frames.

A mask is 2^n - 1, and the first blocks have what it is of. Later ones, counted from 0, have it when their number has no
bit of the mask. They follow each other in memory in the order of their numbers.
"""
CONTROL_BYTES = 32
HEADER_BYTES = 64
MAGIC = 0xB4A66003
_LABEL = re.compile(r"\$\w+")
_COPY = "_bragg_copy"
PLAIN_LABEL = "$L__bragg_plain"


@dataclass(frozen=True)
class Instrumented:
    """A kernel's PTX with clocks.

    Attributes:
        text: The PTX.
        frames: By number.
        store: Where these are kept.
    """

    text: str
    frames: Sequence[Frame]
    store: Store = IN_GLOBAL_MEMORY


def instrument(
    kernel: Kernel, selection: Selection, rest: Sequence[str] = (), store: Store = IN_GLOBAL_MEMORY
) -> Instrumented:
    """Add clocks to a kernel.

    Args:
        kernel: The kernel.
        selection: What is timed; nothing: warps have headers alone.
        rest: What blocks without frames execute, such as `plain_code`; empty: the same as the others.
        store: Where frames are kept.

    Raises:
        ValueError: A warp may leave the kernel at a place that depends on a predicate.
    """
    statements = [statement for block in kernel.blocks for statement in block.statements]
    if not statements:
        raise ValueError("the kernel is empty")
    frames = frames_of(kernel, selection)
    before: dict[int, list[str]] = defaultdict(list)
    after: dict[int, list[str]] = defaultdict(list)
    for number, frame in enumerate(frames):
        for register, (at, is_behind) in zip(frame.registers, frame.reads, strict=True):
            (after if is_behind else before)[at].append(f"\tmov.u32 \t{register}, %clock;")
        at, is_behind = frame.flush
        (after if is_behind else before)[at] += indented(store.flush(number, frame))
    ends = [each for each in statements if each.branch in ("ret", "exit")]
    if any(each.is_guarded for each in ends):
        raise ValueError("a predicate decides whether it returns")
    keeps = store if frames else None
    for number, each in enumerate(ends):
        before[each.first] += _epilogue(keeps, number)
    first, last = statements[0].first, statements[-1].last
    before[first][:0] = _prologue(keeps, has_rest=bool(rest))
    after[kernel.body - 1] = _registers(max((len(frame.reads) for frame in frames), default=0))
    if keeps is not None:
        after[kernel.body - 1] += keeps.registers()
        before[kernel.entry] += keeps.declaration()
    if rest:
        after[last] += [f"{PLAIN_LABEL}:", *rest]
    return Instrumented(declared(kernel, before, after), frames, keeps or IN_GLOBAL_MEMORY)


def plain_code(kernel: Kernel) -> list[str]:
    """A kernel's code once more, with labels of its own.

    Raises:
        ValueError: It cannot be copied.
    """
    statements = [statement for block in kernel.blocks for statement in block.statements]
    if any(each.branch == "brx" for each in statements):
        raise ValueError("its code cannot be copied: it jumps by a table")
    labels = {label for block in kernel.blocks for label in block.labels}
    found = []
    for number in range(statements[0].first, statements[-1].last + 1):
        line = kernel.lines[number]
        if (match := _LABEL.match(line)) and match[0] not in labels:
            continue  # of debug information, which is that of the first copy
        found.append(_LABEL.sub(lambda label: label[0] + _COPY if label[0] in labels else label[0], line))
    return found


def declared(kernel: Kernel, before: Mapping[int, Sequence[str]], after: Mapping[int, Sequence[str]]) -> str:
    """The text of a kernel with `CONTROL`, and lines before and behind some of its own."""
    lines = []
    for number, line in enumerate(kernel.lines):
        if number == kernel.entry:
            lines.append(f".visible .global .align 16 .b8 {CONTROL}[{CONTROL_BYTES}];")
        lines += [*before.get(number, ()), line, *after.get(number, ())]
    return "\n".join(lines) + "\n"


def _registers(n_clocks: int) -> list[str]:
    return [
        f"\t.reg .b32 \t%bragg_c<{n_clocks + 1}>;",
        "\t.reg .b32 \t%bragg_w<12>, %bragg_e;",
        "\t.reg .b64 \t%bragg_d<6>;",
        "\t.reg .pred \t%bragg_on, %bragg_has, %bragg_p, %bragg_rest;",
    ]


BLOCK_NUMBER = [
    "mov.u32 %bragg_w4, %ctaid.z;",
    "mov.u32 %bragg_w5, %nctaid.y;",
    "mov.u32 %bragg_w6, %ctaid.y;",
    "mad.lo.u32 %bragg_w4, %bragg_w4, %bragg_w5, %bragg_w6;",
    "mov.u32 %bragg_w5, %nctaid.x;",
    "mov.u32 %bragg_w6, %ctaid.x;",
    "mad.lo.u32 %bragg_w4, %bragg_w4, %bragg_w5, %bragg_w6;",
]
"""Statements that set %bragg_w4 to the number of the block."""

# Sets %bragg_d1 to the warp's header, %bragg_d2 to its frames, %bragg_has and %bragg_p to whether it has them, and
# %bragg_w2 to 0 in blocks with frames.
_FIND = (
    """
mov.u64 %bragg_d0, bragg_control;
ld.global.v2.b64 {%bragg_d1, %bragg_d2}, [%bragg_d0];
ld.global.v4.b32 {%bragg_w0, %bragg_w1, %bragg_w2, %bragg_w3}, [%bragg_d0+16];
min.u32 %bragg_w5, %bragg_w4, %bragg_w2;
sub.u32 %bragg_w6, %bragg_w4, %bragg_w5;
popc.b32 %bragg_w7, %bragg_w0;
shr.u32 %bragg_w7, %bragg_w6, %bragg_w7;
add.u32 %bragg_w7, %bragg_w7, %bragg_w5;
popc.b32 %bragg_w8, %bragg_w1;
shr.u32 %bragg_w8, %bragg_w6, %bragg_w8;
add.u32 %bragg_w8, %bragg_w8, %bragg_w5;
and.b32 %bragg_w0, %bragg_w0, %bragg_w6;
and.b32 %bragg_w2, %bragg_w1, %bragg_w6;
mov.u32 %bragg_w5, %tid.x;
and.b32 %bragg_w6, %bragg_w5, 31;
shr.u32 %bragg_w5, %bragg_w5, 5;
or.b32 %bragg_w0, %bragg_w0, %bragg_w6;
setp.eq.u32 %bragg_has, %bragg_w0, 0;
setp.ne.and.u64 %bragg_has, %bragg_d1, 0, %bragg_has;
mov.u32 %bragg_w6, %ntid.x;
shr.u32 %bragg_w6, %bragg_w6, 5;
mad.lo.u32 %bragg_w7, %bragg_w7, %bragg_w6, %bragg_w5;
mul.wide.u32 %bragg_d3, %bragg_w7, {header};
add.s64 %bragg_d1, %bragg_d1, %bragg_d3;
mov.u32 %bragg_w6, 1;
shl.b32 %bragg_w6, %bragg_w6, %bragg_w5;
and.b32 %bragg_w7, %bragg_w6, %bragg_w3;
setp.ne.and.u32 %bragg_p, %bragg_w7, 0, %bragg_has;
setp.eq.and.u32 %bragg_p, %bragg_w2, 0, %bragg_p;
setp.ne.and.u64 %bragg_p, %bragg_d2, 0, %bragg_p;
sub.u32 %bragg_w6, %bragg_w6, 1;
and.b32 %bragg_w6, %bragg_w6, %bragg_w3;
popc.b32 %bragg_w6, %bragg_w6;
popc.b32 %bragg_w7, %bragg_w3;
mad.lo.u32 %bragg_w8, %bragg_w8, %bragg_w7, %bragg_w6;
mul.wide.u32 %bragg_d3, %bragg_w8, {warp};
add.s64 %bragg_d2, %bragg_d2, %bragg_d3;
""".replace("{header}", str(HEADER_BYTES))
    .replace("{warp}", str(WARP_BYTES))
    .split("\n")
)

TO_PLAIN_CODE = ["setp.ne.u32 %bragg_rest, %bragg_w2, 0;", f"@%bragg_rest bra.uni {PLAIN_LABEL};"]
"""Statements that send blocks to `PLAIN_LABEL`, with all their warps, if %bragg_w2 is not 0."""

_START = """
mov.u32 %bragg_w9, %clock;
mov.u32 %bragg_w10, %clock;
sub.u32 %bragg_w9, %bragg_w10, %bragg_w9;
@%bragg_has st.global.cs.b32 [%bragg_d1+48], %bragg_w9;
mov.u64 %bragg_d4, %globaltimer;
mov.u64 %bragg_d5, %clock64;
@%bragg_has st.global.cs.v2.b64 [%bragg_d1], {%bragg_d4, %bragg_d5};
"""

_END = f"""
mov.u64 %bragg_d4, %globaltimer;
mov.u64 %bragg_d5, %clock64;
@%bragg_has st.global.cs.v2.b64 [%bragg_d1+16], {{%bragg_d4, %bragg_d5}};
mov.u32 %bragg_w0, {MAGIC:#x};
mov.u32 %bragg_w1, %smid;
@%bragg_has st.global.cs.v4.b32 [%bragg_d1+32], {{%bragg_w0, %bragg_w1, %bragg_w4, %bragg_w8}};
@%bragg_has red.global.add.u32 [%bragg_d1+52], 1;
"""


def _prologue(store: Store | None, *, has_rest: bool) -> list[str]:
    begin = store.begin() if store is not None else []
    return indented([*BLOCK_NUMBER, *_FIND, *(TO_PLAIN_CODE if has_rest else ()), *_START.split("\n"), *begin])


def _epilogue(store: Store | None, number: int) -> list[str]:
    due, end = (store.due(), store.end(number)) if store is not None else (["mov.u32 %bragg_w8, 0;"], [])
    return indented([*BLOCK_NUMBER, *_FIND, *due, *_END.split("\n"), *end])


def indented(statements: Sequence[str]) -> list[str]:
    """Statements as lines of PTX."""
    return [f"\t{statement}" for statement in statements if statement]
