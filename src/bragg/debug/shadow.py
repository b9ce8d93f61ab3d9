"""Shadow memory: who accessed each element last, and whether two programs were ordered by atomics in between."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from bragg.debug.storage import Buffer

__all__ = ["NOBODY", "SEVERAL", "Cells", "Synchronisation", "regions"]

Array = npt.NDArray[Any]

NOBODY = -1
SEVERAL = -2


class Cells:
    """Shadow of one range of memory, one cell for each granule of bytes.

    Attributes:
        address: Of the first byte.
        granule: Bytes of a cell: the smallest element of the tensors that lie there.
        writer: int32: program that wrote last, or NOBODY.
        write_step: int32: when, in steps of the launch.
        write_place: int16: where, as a number that the owner gives to source lines.
        is_atomic: bool: the last write was an atomic.
        reader: int32: program that read since the last write, NOBODY, or SEVERAL.
        read_step: int32.
        read_place: int16.
    """

    def __init__(self, address: int, size_bytes: int, granule: int) -> None:
        count = -(-size_bytes // granule)
        self.address, self.granule = address, granule
        self.writer = np.full(count, NOBODY, np.int32)
        self.reader = np.full(count, NOBODY, np.int32)
        self.write_step, self.read_step = np.zeros(count, np.int32), np.zeros(count, np.int32)
        self.write_place, self.read_place = np.zeros(count, np.int16), np.zeros(count, np.int16)
        self.is_atomic = np.zeros(count, bool)


def regions(buffers: list[Buffer]) -> list[tuple[int, int, int]]:
    """Address, bytes and granule of the ranges of memory that tensors share, ascending."""
    spans = sorted(
        (b.address + b.low * b.dtype.size_bytes, b.address + b.high * b.dtype.size_bytes, b.dtype.size_bytes)
        for b in buffers
        if len(b.flat)
    )
    merged: list[list[int]] = []
    for start, end, size in spans:
        if merged and start < merged[-1][1]:
            last = merged[-1]
            granule = int(np.gcd(np.gcd(last[2], size), start - last[0]))
            merged[-1] = [last[0], max(last[1], end), granule]
        else:
            merged.append([start, end, size])
    return [(start, end - start, granule) for start, end, granule in merged]


@dataclass
class _Event:
    """One atomic with acquire or release of several lanes."""

    step: int
    addresses: Array
    programs: Array
    order: str


class Synchronisation:
    """Which program knows of what another one did, by the atomics they met at.

    The events are only replayed when a conflict asks: most kernels with atomics have none.
    """

    def __init__(self) -> None:
        self._events: list[_Event] = []
        self._replayed = 0
        self._known: dict[int, dict[int, int]] = {}
        self._released: dict[int, dict[int, int]] = {}

    def note(self, step: int, addresses: Array, programs: Array, order: str) -> None:
        """Remember an atomic; lanes are in the order in which they take effect."""
        if order != "relaxed":
            self._events.append(_Event(step, addresses, programs, order))

    def orders(self, earlier: int, step: int, later: int) -> bool:
        """The later program knows what the earlier one did at a step."""
        if not self._events:
            return False
        self._replay()
        return self._known.get(later, {}).get(earlier, -1) >= step

    def _replay(self) -> None:
        for event in self._events[self._replayed :]:
            for address, program in zip(event.addresses.tolist(), event.programs.tolist(), strict=True):
                known = self._known.setdefault(program, {})
                released = self._released.setdefault(address, {})
                if event.order in ("acquire", "acq_rel"):
                    _join(known, released)
                if event.order in ("release", "acq_rel"):
                    _join(released, known)
                    released[program] = event.step
        self._replayed = len(self._events)


def _join(into: dict[int, int], other: dict[int, int]) -> None:
    for program, step in other.items():
        if into.get(program, -1) < step:
            into[program] = step
