"""What runs beside a kernel and has not been waited for: copies into and out of shared memory, products.

The engine completes them when they are started. So that a missing wait shows, each is kept here as under way until the
kernel waits for it, with the elements that it writes and reads:

    started by                    is over for the kernel after
    async_copy                    wait_group of its group, or a wait for the barrier of mbarrier_arrive
    tma loads                     a wait for the phase of its barrier
    tma stores                    store_wait
    warpgroup_mma(is_async)       warpgroup_mma_wait
    tcgen05_mma, tcgen05_copy     a wait for the phase that tcgen05_commit or its own barriers complete
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from bragg.debug.flow.place import kernel_line
from bragg.debug.gluon.tracker import AsyncWork, Tracker
from bragg.debug.state import Machine, machine
from bragg.model.table import Array

if TYPE_CHECKING:
    from bragg.debug.gluon.shared_memory import SharedMemory


@dataclass(eq=False)
class Flight:
    """One copy or product.

    Attributes:
        kind: `copy`, `load`, `store`, `product`, `tensor product`: how it is waited for.
        place: File and line that started it.
        is_open: bool [batch]: the programs that have not waited for it.
        barriers: The memory, elements and phases [batch] of barriers that it completes; the first to do so ends it.
    """

    kind: str
    place: tuple[str, int]
    is_open: Array
    barriers: list[tuple[Any, Array, Array]] = field(default_factory=list)


@dataclass
class _Queue:
    """What one partition has started: copies that are in no group yet, groups, stores and products."""

    copies: list[Flight] = field(default_factory=list)
    groups: list[list[Flight]] = field(default_factory=list)
    stores: list[Flight] = field(default_factory=list)
    products: list[Flight] = field(default_factory=list)
    tensor_products: list[Flight] = field(default_factory=list)


class _Marks:
    """For each byte of an allocation the number of the flight that writes it, and of the one that reads it; 0: none.

    `unread` marks bytes that were copied in and that nobody has read.
    """

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.writer = np.zeros(shape, np.int32)
        self.reader = np.zeros(shape, np.int32)
        self.unread = np.zeros(shape, bool)


class Asynchrony(Tracker):
    """Follows the copies and products of a launch.

    Args:
        tell: Called with what is used too early; (what, flight, rows of the batch).
    """

    def __init__(self, tell: Callable[[str, Flight, Array], None]) -> None:
        self._tell = tell
        self._flights: list[Flight] = []
        self._marks: dict[int, tuple[Any, _Marks]] = {}
        self._queues: dict[Machine, _Queue] = {}

    def started(self, work: AsyncWork) -> None:
        """A copy or product begins."""
        now, kind, chosen = machine(), work.kind, work.chosen
        if not chosen.any():
            return
        is_open = np.zeros(len(now.linear), bool)
        is_open[now.rows[chosen]] = True
        flight = Flight(kind, kernel_line(), is_open)
        if work.barrier is not None:
            self._attach(flight, work.barrier)
        self._flights.append(flight)
        number = len(self._flights)
        for memory in work.reads:
            if hasattr(memory, "memory"):
                self._look(memory, "writer", chosen, kind)
                self._mark(memory, "reader", number, chosen)
        if work.writes is not None:
            self._look(work.writes, "reader", chosen, kind)
            if kind in ("copy", "load"):
                self._look_unread(work.writes, chosen)
            else:
                self._look(work.writes, "writer", chosen, kind)
            self._mark(work.writes, "writer", number, chosen)
        self._enqueue(flight)

    def read(self, memory: SharedMemory) -> None:
        """The kernel itself reads shared memory."""
        self._look(memory, "writer", _all())

    def written(self, memory: SharedMemory, chosen: Array) -> None:
        """The kernel itself writes shared memory, in the active programs that are `chosen`: bool [active]."""
        self._look(memory, "reader", chosen)
        self._look(memory, "writer", chosen, "write")

    def committed(self, barrier: SharedMemory | None = None) -> None:
        """The copies that were started make a group; or those that are open complete a barrier."""
        queue = self._queue()
        if barrier is None:
            queue.groups.append(queue.copies)
            queue.copies = []
            return
        for flight in [*queue.copies, *(one for group in queue.groups for one in group)]:
            if flight.is_open.any():
                self._attach(flight, barrier)

    def committed_products(self, barrier: SharedMemory) -> None:
        """Tensor products that were started complete a barrier."""
        queue = self._queue()
        queue.tensor_products = [flight for flight in queue.tensor_products if flight.is_open.any()]
        for flight in queue.tensor_products:
            self._attach(flight, barrier)

    def waited_for(self, what: str, left: int) -> None:
        """All but the last few groups of copies, `stores` or `products` are over, in the active programs."""
        queue = self._queue()
        waiting: list[Any] = getattr(queue, what)
        over = waiting[: len(waiting) - left] if left else waiting
        for one in over:
            for flight in one if isinstance(one, list) else [one]:
                flight.is_open[machine().rows] = False
        setattr(queue, what, waiting[len(over) :])

    def waited(self, memory: Any, rows: Array, offsets: Array, parity: Array) -> None:
        """A wait of programs, intp [waiting], for a barrier is over: what its completed phases stand for is, too."""
        del parity
        phases = memory.barriers[rows, offsets, 3]
        for flight in self._flights:
            if not flight.is_open.any():
                continue
            for other, places, own in flight.barriers:
                if other is memory:
                    is_over = (places[rows] == offsets) & (own[rows] < phases)
                    flight.is_open[rows[is_over]] = False

    def products_open(self) -> Array:
        """Bool [active programs]: those with products that were not waited for."""
        rows = machine().rows
        is_open = np.zeros(len(rows), bool)
        for flight in self._queue().products:
            is_open |= flight.is_open[rows]
        return is_open

    def last_product(self) -> Flight | None:
        """The product of registers that was started last and that nobody has waited for."""
        return next((one for one in reversed(self._queue().products) if one.is_open.any()), None)

    def unfinished_stores(self) -> list[Flight]:
        """Stores that nobody has waited for."""
        stores = [flight for flight in self._flights if flight.kind == "store"]
        return [flight for flight in stores if flight.is_open.any()]

    def _enqueue(self, flight: Flight) -> None:
        queue = self._queue()
        if flight.kind == "copy":
            queue.copies.append(flight)
        elif flight.kind == "store":
            queue.stores.append(flight)
        elif flight.kind == "product":
            queue.products.append(flight)
        elif flight.kind == "tensor product":
            queue.tensor_products.append(flight)

    def _attach(self, flight: Flight, barrier: SharedMemory) -> None:
        places = np.zeros(len(flight.is_open), np.int64)
        rows = machine().rows
        places[rows] = np.broadcast_to(barrier.offset.data.reshape(-1), len(rows))
        every = np.arange(len(places))
        flight.barriers.append((barrier.memory, places, barrier.memory.barriers[every, places, 3].copy()))

    def _queue(self) -> _Queue:
        return self._queues.setdefault(machine(), _Queue())

    def _marks_of(self, memory: SharedMemory) -> _Marks:
        allocation = memory.memory
        if id(allocation) not in self._marks:
            self._marks[id(allocation)] = allocation, _Marks(allocation.data.shape)
        return self._marks[id(allocation)][1]

    def _mark(self, memory: SharedMemory, what: str, number: int, chosen: Array) -> None:
        marks = self._marks_of(memory)
        typed, places = memory.marked(getattr(marks, what), chosen)
        typed[places] = number
        if self._flights[number - 1].kind in ("copy", "load", "store", "product", "tensor product"):
            typed, places = memory.marked(marks.unread, chosen)
            typed[places] = what == "writer" and self._flights[number - 1].kind in ("copy", "load")

    def _look(self, memory: SharedMemory, what: str, chosen: Array, kind: str = "read") -> None:
        """Tell of flights under way that meet a use of memory."""
        marks = self._marks_of(memory)
        typed, places = memory.marked(getattr(marks, what), chosen)
        numbers = typed[places].max(axis=-1)
        for number in np.unique(numbers[numbers > 0]).tolist():
            flight = self._flights[number - 1]
            if kind == flight.kind == "tensor product":
                continue  # They take effect in their order.
            lanes = (numbers == number).any(axis=1) & flight.is_open[places[0][:, 0]]
            if lanes.any():
                self._tell(_said(what, kind), flight, places[0][lanes, 0])
        if kind == "read" or (what == "writer" and kind != "write"):
            typed, places = memory.marked(marks.unread, chosen)
            typed[places] = False

    def _look_unread(self, memory: SharedMemory, chosen: Array) -> None:
        marks = self._marks_of(memory)
        typed, places = memory.marked(marks.unread, chosen)
        lost = typed[places].any(axis=(1, 2))
        if lost.any():
            typed, _ = memory.marked(marks.writer, chosen)
            number = int(typed[places].max())
            self._tell("overwritten before anybody has read it", self._flights[number - 1], places[0][lost, 0])


def _said(what: str, kind: str) -> str:
    if what == "reader":
        return "overwritten before what reads it was waited for"
    if kind == "write":
        return "written before what writes it was waited for"
    return "read before what writes it was waited for"


def _all() -> Array:
    return np.ones(len(machine().rows), bool)
