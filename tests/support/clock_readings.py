"""Readings of clocks as the warps of an instrumented kernel store them on a GPU."""

from __future__ import annotations

import numpy as np

from bragg.code.instrument.rewriting import HEADER_BYTES, MAGIC, Instrumented
from bragg.code.instrument.segments import Frame, Segment
from bragg.code.instrument.storing import FRAME, IN_GLOBAL_MEMORY, WARP_BYTES, Store

__all__ = ["FRAMES", "KERNEL", "Warp", "launch"]

FRAMES = [
    Frame(
        (Segment("load", False, (), False, 0, 1), Segment("barrier", True, (), False, 1, 2)),
        ((1, False), (1, True), (2, True)),
        (2, True),
    ),
    Frame((Segment("mma_wait", True, (), True, 0, 1),), ((5, False), (5, True)), (6, False)),
]
KERNEL = Instrumented("", FRAMES)


class Warp:
    """Stores as the PTX does: a sticky predicate, an address that goes on."""

    def __init__(self, start: int, store: Store = IN_GLOBAL_MEMORY) -> None:
        self.store = store
        self.start = self.clock = start
        self.memory = np.zeros(WARP_BYTES // 4, np.uint32)
        self.at = 0
        self.is_on = True

    def frame(self, number: int, times: list[int]) -> None:
        words = [FRAME | number << 8 | len(times), *(time % 2**32 for time in times)]
        words += [words[0]] * (-len(words) % 4)
        if self.is_on:
            self.memory[self.at // 4 : self.at // 4 + len(words)] = words
        self.at += 4 * len(words)
        self.is_on = self.is_on and self.at <= self.store.last_start

    def header(self, block: int, read_cycles: int = 0, launches: int = 0) -> bytes:
        words = np.zeros(HEADER_BYTES // 4, np.uint32)
        words[:8] = np.array([10, self.start, 10 + (self.clock - self.start) // 2, self.clock], np.uint64).view("<u4")
        words[8:14] = MAGIC, block % 7, block, self.at, read_cycles, launches
        return words.tobytes()


def launch(
    passages: list[int], start: int = 2**32 - 50, store: Store = IN_GLOBAL_MEMORY
) -> tuple[list[Warp], np.ndarray]:
    """Warps, of which each passes so often through its loop; the true cycles by segment and warp."""
    truth = np.zeros((3, len(passages)), np.int64)
    random = np.random.default_rng(len(passages))
    warps = []
    for number, n_passages in enumerate(passages):
        warp = Warp(start, store)
        spent = random.integers(1, 1000, 2)
        warp.frame(0, [start, start + int(spent[0]), start + int(spent.sum())])
        truth[:2, number] += spent
        warp.clock += int(spent.sum())
        for _ in range(n_passages):
            took = int(random.integers(1, 5000))
            if warp.is_on:
                truth[2, number] += took
            warp.frame(1, [warp.clock, warp.clock + took])
            warp.clock += took + 3
        warps.append(warp)
    return warps, truth
