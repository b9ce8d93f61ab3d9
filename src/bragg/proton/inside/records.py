"""What the records of a launch say; the layout is that of Triton 3.6 to 3.9.

Each block of the launch has memory of its own:

| bytes | |
|---|---|
| 0, 4, 8, 12 | u32 mark 0xDEADBEEF (else the block stored nothing), block, multiprocessor, bytes of records |
| 16, 24, 32 | u64 global time, ns: at the start, before records are copied out, and after it |
| 40 | u32 words that were due, for each warp |
| then | equal parts for the warps that are measured, of records of 8 bytes; the oldest ones are overwritten |

A record is u32 end << 31 | scope << 23 | bits 32 to 42 of the clock, and u32 with its low half.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["BlockRecords", "Passage", "read_records"]

_MARK = 0xDEADBEEF
_HEADER_WORDS = 10
_END = 0x80000000
_SCOPE_SHIFT, _SCOPE_MASK, _CLOCK_MASK = 23, 0xFF, 0x7FF


@dataclass(frozen=True)
class Passage:
    """A warp passed through a scope.

    Attributes:
        scope: Its number.
        warp: Of the block.
        start, end: Clock of the multiprocessor, cycles.
    """

    scope: int
    warp: int
    start: int
    end: int


@dataclass(frozen=True)
class BlockRecords:
    """What one block stored.

    Attributes:
        block: Its number in the launch.
        multiprocessor: Where it ran.
        start_ns, last_ns, end_ns: Global time at its start, before and after its records were copied out.
        passages: By warp, and then in the order of their ends.
    """

    block: int
    multiprocessor: int
    start_ns: int
    last_ns: int
    end_ns: int
    passages: tuple[Passage, ...]


def read_records(
    image: bytes, block_bytes: int, n_warps: int, measured: Sequence[int], record_cycles: int = 0
) -> Iterator[BlockRecords]:
    """The blocks of a launch that stored something.

    Args:
        image: The memory of all blocks.
        block_bytes: Of one.
        n_warps: Of a block.
        measured: The warps that have records, ascending.
        record_cycles: What each record costs: it is taken off those after it.
    """
    words = np.frombuffer(image, "<u4", len(image) // block_bytes * (block_bytes // 4)).reshape(-1, block_bytes // 4)
    for own in words:
        if own[0] != _MARK:
            continue
        start_ns, last_ns, end_ns = own[4:_HEADER_WORDS].copy().view("<u8").tolist()
        counts = own[_HEADER_WORDS : _HEADER_WORDS + n_warps].tolist()
        room = min(int(own[3]) // 4, len(own) - _HEADER_WORDS - n_warps) // max(len(measured), 1)
        passages: list[Passage] = []
        for index, warp in enumerate(each for each in measured if each < n_warps):
            begin = _HEADER_WORDS + n_warps + index * room
            passages += _passages(_in_order(own[begin : begin + room], counts[warp]), warp, record_cycles)
        yield BlockRecords(int(own[1]), int(own[2]), start_ns, last_ns, end_ns, tuple(passages))


def _in_order(words: NDArray[np.uint32], due: int) -> list[list[int]]:
    """The records of a warp, the oldest first."""
    records = words[: len(words) // 2 * 2].reshape(-1, 2)
    if due <= 2 * len(records):
        return records[: due // 2].tolist()  # type: ignore[no-any-return]
    oldest = due // 2 % max(len(records), 1)
    return np.concatenate([records[oldest:], records[:oldest]]).tolist()  # type: ignore[no-any-return]


def _passages(records: Sequence[Sequence[int]], warp: int, record_cycles: int) -> Iterator[Passage]:
    """Begins with their ends; what has lost the other one is left out."""
    open_since: dict[int, int] = {}
    for number, (tag, low) in enumerate(records):
        clock = ((tag & _CLOCK_MASK) << 32 | low) - number * record_cycles
        scope = tag >> _SCOPE_SHIFT & _SCOPE_MASK
        if not tag & _END:
            open_since[scope] = clock
        elif (start := open_since.pop(scope, None)) is not None:
            if tag & _CLOCK_MASK == 0 and clock < start:
                clock += 2**32  # 32 bits of the clock, which began anew
            yield Passage(scope, warp, start, max(clock, start))
