"""What runs beside the warpgroups of a Mosaic GPU block: copies between global and shared memory, and products.

A copy happens when its barrier, or its group, is waited for. Until then its elements must not be touched:

    started by            what it writes                 what it reads
    copy_gmem_to_smem     shared memory, until a wait    global memory
                          for the phase of its barrier
    copy_smem_to_gmem     global memory                  shared memory, until wait_smem_to_gmem
    wgmma                 the accumulator                shared memory, until wgmma_wait
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from bragg.debug.pallas.references import Whole
from bragg.model.table import Array

Places = tuple[Array, ...]
"""Indices of elements of an array: int64 [elements], one for each axis."""

_NOBODY = -1


@dataclass(eq=False)
class Flight:
    """A copy or a product that was started.

    Attributes:
        equation: That starts it.
        what: Its name.
        target: What it writes.
        writes: The elements of it; None: of an accumulator, which is no memory.
        source: What it reads in shared memory, with the elements.
        finish: Does it.
    """

    equation: Any
    what: str
    target: Whole
    writes: Places | None
    source: list[tuple[Whole, Places]]
    finish: Callable[[], None]
    is_over: bool = False


@dataclass
class Barrier:
    """One barrier of a block.

    Attributes:
        name: Of the kernel's parameter, with the number among those of an array.
        n_arrivals: That complete a phase.
        arrivals: Those so far: a copy, or None for a warpgroup that arrives itself.
        waited: How many phases each warpgroup has waited for.
    """

    name: str
    n_arrivals: int
    arrivals: list[Flight | None] = field(default_factory=list)
    waited: defaultdict[int, int] = field(default_factory=lambda: defaultdict(int))

    def is_complete(self, warpgroup: int) -> bool:
        """The phase that a warpgroup waits for next is over."""
        return len(self.arrivals) >= (self.waited[warpgroup] + 1) * self.n_arrivals

    def pass_by(self, warpgroup: int) -> list[Flight]:
        """A warpgroup has waited for its next phase: the copies that are over by that."""
        self.waited[warpgroup] += 1
        over = self.arrivals[: self.waited[warpgroup] * self.n_arrivals]
        return [one for one in over if one is not None and not one.is_over]

    def __str__(self) -> str:
        missing = self.n_arrivals - len(self.arrivals) % self.n_arrivals
        return f"{self.name}, of which {missing} of {self.n_arrivals} arrivals are missing"


class Flights:
    """All that is under way in a block.

    Attributes:
        groups: Of each warpgroup: its groups of stores, the last one still open.
        products: Of each warpgroup.
    """

    def __init__(self) -> None:
        self.groups: defaultdict[int, list[list[Flight]]] = defaultdict(lambda: [[]])
        self.products: defaultdict[int, deque[Flight]] = defaultdict(deque)
        self._under_way: list[Flight] = []
        self._arriving: dict[int, Array] = {}
        self._read: dict[int, Array] = {}
        self._stored: dict[int, Array] = {}

    def start(self, flight: Flight) -> None:
        """It is under way."""
        self._under_way.append(flight)
        if flight.writes is not None:
            self._of(self._arriving, flight.target)[flight.writes] += 1
        for whole, places in flight.source:
            self._of(self._read, whole)[places] += 1

    def finish(self, flight: Flight) -> None:
        """It is over."""
        flight.is_over = True
        self._under_way.remove(flight)
        if flight.writes is not None:
            self._of(self._arriving, flight.target)[flight.writes] -= 1
        for whole, places in flight.source:
            self._of(self._read, whole)[places] -= 1
        flight.finish()

    def left(self) -> list[Flight]:
        """Those that nobody has waited for."""
        return list(self._under_way)

    def writer_of(self, whole: Whole, places: Places) -> Flight | None:
        """What is under way to some of these elements."""
        return self._touching(whole, places, self._arriving, lambda one: [(one.target, one.writes)])

    def reader_of(self, whole: Whole, places: Places) -> Flight | None:
        """What still reads some of these elements."""
        return self._touching(whole, places, self._read, lambda one: one.source)

    def note_store(self, whole: Whole, places: Places, warpgroup: int) -> None:
        """A warpgroup has written shared memory."""
        self._of(self._stored, whole, _NOBODY)[places] = warpgroup

    def commit_stores(self, warpgroup: int) -> None:
        """What a warpgroup has written is visible to copies and products."""
        for stored in self._stored.values():
            stored[stored == warpgroup] = _NOBODY

    def is_committed(self, whole: Whole, places: Places) -> bool:
        """All that warpgroups have written of these elements is visible to copies and products."""
        stored = self._stored.get(id(whole))
        return stored is None or bool((stored[places] == _NOBODY).all())

    def _touching(
        self,
        whole: Whole,
        places: Places,
        counts: dict[int, Array],
        parts: Callable[[Flight], Any],
    ) -> Flight | None:
        own = counts.get(id(whole))
        if own is None or not own[places].any():
            return None
        mine = np.zeros(whole.data.shape, bool)
        mine[places] = True
        return next(
            one
            for one in self._under_way
            if any(other is whole and where is not None and mine[where].any() for other, where in parts(one))
        )

    @staticmethod
    def _of(by_whole: dict[int, Array], whole: Whole, start: int = 0) -> Array:
        if id(whole) not in by_whole:
            by_whole[id(whole)] = np.full(whole.data.shape, start, np.int32)
        return by_whole[id(whole)]
