"""Partitions of a kernel that access the same shared memory: what nothing orders is a race.

Each partition knows for each other one, and for what that has started, up to which access it has happened before: a
vector clock. An arrival publishes at its barrier what the partition knows; a completed phase keeps what all arrivals up
to it have published, and a wait learns it. A wait with a parity may end as soon as the earliest phase of that parity is
over that the partition does not already know of, so that is all it learns, even if later phases are over by now.

Copies and products have clocks of their own: what waits for them learns that they are over, and no arrival of the
partition that started them tells it to others before. As long as nobody has waited for one, `asynchrony` tells of it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from bragg.debug.flow.place import kernel_line
from bragg.debug.gluon.tracker import AsyncWork, Tracker
from bragg.debug.state import Machine, machine
from bragg.model.table import Array

if TYPE_CHECKING:
    from bragg.debug.gluon.shared_memory import SharedMemory

# What has a clock: a partition itself, and each kind of what it starts.
_KINDS = ("", "copy", "load", "store", "product", "tensor product")
_QUEUES = {"groups": "copy", "stores": "store", "products": "product"}
# Column of a barrier: the phase that is under way.
_PHASE = 3


@dataclass(frozen=True)
class _Use:
    """An access of shared memory, or several that begin at once; its step is its place among all.

    Attributes:
        column: Of the clocks: who does it.
        kind: What runs beside the kernel; empty: the kernel itself.
        writes: It writes.
        place: File and line.
    """

    column: int
    kind: str
    writes: bool
    place: tuple[str, int]


@dataclass(frozen=True)
class Race:
    """Two partitions access the same element, one of them writes, and nothing orders them.

    Attributes:
        writes: The later access writes.
        other_writes: The earlier one did.
        kinds: What runs beside the kernel and does the later and the earlier one; empty: the kernel itself.
        names: The partitions of the later and of the earlier one.
        other_place: File and line of the earlier one.
        why: What an order lacks.
        where: bool [active, 1]: the programs.
    """

    writes: bool
    other_writes: bool
    kinds: tuple[str, str]
    names: tuple[str, str]
    other_place: tuple[str, int]
    why: str
    where: Array


@dataclass
class _Marks:
    """For each byte of an allocation, int32 [batch, bytes], the last step that wrote it, and read it by column."""

    writer: Array
    readers: dict[int, Array] = field(default_factory=dict)


class _Barrier:
    """What arrivals at one barrier have published.

    Args:
        pending: int32 [batch, columns]: so far.
        partitions: How many of them there are.

    Attributes:
        phases: The same when each phase was over, in the programs where it is.
        known: int64 [batch] for each partition: how many phases it surely knows to be over.
    """

    def __init__(self, pending: Array, partitions: int) -> None:
        self.pending = pending
        self.phases: dict[int, Array] = {}
        self.known = [np.zeros(len(pending), np.int64) for _ in range(partitions)]

    def complete(self, rows: Array, phases: Array) -> None:
        """Phases, int64 [completing], are over in programs."""
        for phase in np.unique(phases).tolist():
            own = rows[phases == phase]
            self.phases.setdefault(phase, np.zeros_like(self.pending))[own] = self.pending[own]

    def published(self, rows: Array, phases: Array) -> Array:
        """int32 [rows, columns]: what who waits for a phase learns; of those before the partitions began, nothing."""
        learned = np.zeros((len(rows), self.pending.shape[1]), np.int32)
        for phase in np.unique(phases).tolist():
            if phase in self.phases:
                learned[phases == phase] = self.phases[phase][rows[phases == phase]]
        return learned


class _Group:
    """The partitions of a batch of programs.

    Args:
        n_programs: In the batch.
        names: Of the partitions' functions.
    """

    def __init__(self, n_programs: int, names: Sequence[str]) -> None:
        count = len(names)
        self.names = [f"partition {number}{f' ({name})' if name else ''}" for number, name in enumerate(names)]
        self.uses = [_Use(0, "", writes=False, place=("", 0))]
        columns = len(_KINDS) * count
        self.clocks = [np.zeros((n_programs, columns), np.int32) for _ in names]
        # What waits have seen that may not have been there in another run.
        self.seen = [np.zeros((n_programs, columns), np.int32) for _ in names]
        self.marks: dict[Any, _Marks] = {}
        self.barriers: dict[tuple[Any, int], _Barrier] = {}
        self.queues: list[dict[str, list[int]]] = [defaultdict(list) for _ in names]
        self.released, self.has_waited = [0] * count, [False] * count

    @property
    def now(self) -> int:
        """The last step."""
        return len(self.uses) - 1

    def column(self, own: int, kind: str) -> int:
        """Of what a partition does itself, or by a kind of copies or products."""
        return _KINDS.index(kind) * len(self.names) + own

    def marks_of(self, allocation: Any) -> _Marks:
        if allocation not in self.marks:
            self.marks[allocation] = _Marks(np.zeros(allocation.data.shape, np.int32))
        return self.marks[allocation]

    def barrier(self, allocation: Any, offset: int) -> _Barrier:
        key = allocation, offset
        if key not in self.barriers:
            self.barriers[key] = _Barrier(np.zeros_like(self.clocks[0]), len(self.names))
        return self.barriers[key]

    def use(self, own: int, kind: str, memory: SharedMemory, chosen: Array, *, writes: bool) -> Iterator[Race]:
        """An access, in the active programs chosen: bool [active]; gives the races that it has with earlier ones."""
        one = _Use(self.column(own, kind), kind, writes, kernel_line())
        self.uses.append(one)
        marks = self.marks_of(memory.memory)
        earlier = [marks.writer, *(marks.readers.values() if writes else ())]
        for steps in earlier:
            yield from self._races(own, one, memory, steps, chosen)
        if not writes and one.column not in marks.readers:
            marks.readers[one.column] = np.zeros_like(marks.writer)
        view, places = memory.marked(marks.writer if writes else marks.readers[one.column], chosen)
        view[places] = self.now

    def _races(self, own: int, one: _Use, memory: SharedMemory, marks: Array, chosen: Array) -> Iterator[Race]:
        view, places = memory.marked(marks, chosen)
        steps, rows = view[places].max(axis=-1), places[0][:, 0]
        for step in np.flatnonzero(np.bincount(steps.reshape(-1))).tolist():
            other = self.uses[step]
            if step == 0 or other.column % len(self.names) == own:
                continue
            lanes = (steps == step).any(axis=1) & (self.clocks[own][rows, other.column] < step)
            if other.kind:
                lanes &= np.max([clock[rows, other.column] for clock in self.clocks], axis=0) >= step
            if lanes.any():
                where = np.zeros((len(chosen), 1), bool)
                where[np.flatnonzero(chosen)[lanes]] = True
                yield self._race(own, one, step, rows[lanes], where)

    def _race(self, own: int, one: _Use, step: int, rows: Array, where: Array) -> Race:
        other = self.uses[step]
        names = self.names[own], self.names[other.column % len(self.names)]
        why = self._why_not(own, step, rows)
        return Race(one.writes, other.writes, (one.kind, other.kind), names, other.place, why, where)

    def _why_not(self, own: int, step: int, rows: Array) -> str:
        other = self.uses[step]
        rival = other.column % len(self.names)
        if (self.seen[own][rows, other.column] >= step).any():
            return f"the wait of {self.names[own]} may end by an earlier phase of the barrier"
        if other.kind:
            return f"{self.names[own]} has waited for no barrier that tells that this is over"
        if self.released[rival] < step:
            return f"{self.names[rival]} has arrived at no barrier after it"
        if not self.has_waited[own]:
            return f"{self.names[own]} has waited for no barrier before it"
        return f"{self.names[own]} has waited for no barrier that {self.names[rival]} has arrived at after it"

    def publish(self, own: int, allocation: Any, rows: Array, offset: int) -> _Barrier:
        """A partition tells at a barrier what it knows and has done, in programs, intp [arriving]."""
        barrier, clock = self.barrier(allocation, offset), self.clocks[own]
        clock[rows, own] = self.released[own] = self.now
        barrier.pending[rows] = np.maximum(barrier.pending[rows], clock[rows])
        return barrier

    def learn(self, own: int, barrier: _Barrier, rows: Array, phases: Array, parity: Array) -> None:
        """A partition has waited for a parity, int [rows]; phases, int64 [rows], are under way."""
        clock, known = self.clocks[own], barrier.known[own][rows]
        while (ahead := known < phases).any():
            ahead &= (barrier.published(rows, known) <= clock[rows]).all(axis=1)
            if not ahead.any():
                break
            known += ahead
        known = np.minimum(known + (known % 2 == parity), phases)
        barrier.known[own][rows] = known
        clock[rows] = np.maximum(clock[rows], barrier.published(rows, known - 1))
        seen = self.seen[own]
        seen[rows] = np.maximum(seen[rows], barrier.published(rows, phases - 1))
        self.has_waited[own] = True


class Partitions(Tracker):
    """Follows what partitions do to shared memory, and what orders them.

    Args:
        tell: Called with each race.
    """

    def __init__(self, tell: Callable[[Race], None]) -> None:
        self._tell = tell
        self._members: dict[Machine, tuple[_Group, int]] = {}

    def split(self, partitions: Sequence[Machine], names: Sequence[str]) -> None:
        """The current programs go on as several partitions, which know all that was done before."""
        group = _Group(len(machine().linear), names)
        self._members |= {one: (group, number) for number, one in enumerate(partitions)}

    def joined(self, partitions: Sequence[Machine]) -> None:
        """All partitions have ended."""
        for one in partitions:
            del self._members[one]

    def started(self, work: AsyncWork) -> None:
        """A copy or product begins."""
        if machine() not in self._members or not work.chosen.any():
            return
        for memory in work.reads:
            if hasattr(memory, "memory"):
                self._use(work.kind, memory, work.chosen, writes=False)
        if work.writes is not None:
            self._use(work.kind, work.writes, work.chosen, writes=True)
        group, own = self._members[machine()]
        if work.barrier is not None:
            self._complete(work.barrier, work.kind, group.now)
        else:
            group.queues[own][work.kind].append(group.now)

    def read(self, memory: SharedMemory) -> None:
        """The kernel itself reads shared memory."""
        self._use("", memory, np.ones(len(machine().rows), bool), writes=False)

    def written(self, memory: SharedMemory, chosen: Array) -> None:
        """The kernel itself writes shared memory, in the active programs that are `chosen`: bool [active]."""
        self._use("", memory, chosen, writes=True)

    def committed(self, barrier: SharedMemory | None = None) -> None:
        """The copies that were started make a group; or those that are open complete a barrier."""
        if machine() not in self._members:
            return
        group, own = self._members[machine()]
        copies = group.queues[own]["copy"]
        if barrier is None:
            group.queues[own]["groups"].append(copies[-1] if copies else 0)
        elif copies:
            self._complete(barrier, "copy", copies[-1])

    def committed_products(self, barrier: SharedMemory) -> None:
        """Tensor products that were started complete a barrier."""
        if machine() in self._members:
            group, own = self._members[machine()]
            self._complete(barrier, "tensor product", max(group.queues[own]["tensor product"], default=0))

    def waited_for(self, what: str, left: int) -> None:
        """All but the last few `groups` of copies, `stores` or `products` are over, in the active programs."""
        if machine() not in self._members:
            return
        group, own = self._members[machine()]
        kind = _QUEUES[what]
        waiting = group.queues[own]["groups" if kind == "copy" else kind]
        over = waiting[: max(len(waiting) - left, 0)]
        if over:
            known, at = group.clocks[own], (machine().rows, group.column(own, kind))
            known[at] = np.maximum(known[at], max(over))
            del waiting[: len(over)]

    def initialised(self, memory: Any, offsets: Array) -> None:
        """Barriers, int64 [programs], begin anew."""
        if machine() in self._members:
            for offset in set(offsets.tolist()):
                self._members[machine()][0].barriers.pop((memory, offset), None)

    def arrived(self, memory: Any, rows: Array, offsets: Array, is_over: Array) -> None:
        """Programs, intp [arriving], have arrived at a barrier, or bytes have come."""
        if machine() not in self._members:
            return
        group, own = self._members[machine()]
        for offset in set(offsets.tolist()):
            at = offsets == offset
            barrier = group.publish(own, memory, rows[at], offset)
            over = rows[at & is_over]
            barrier.complete(over, memory.barriers[over, offset, _PHASE] - 1)

    def waited(self, memory: Any, rows: Array, offsets: Array, parity: Array) -> None:
        """A wait of programs, intp [waiting], for a barrier is over."""
        if machine() not in self._members:
            return
        group, own = self._members[machine()]
        for offset in set(offsets.tolist()):
            at = offsets == offset
            phases = memory.barriers[rows[at], offset, _PHASE]
            group.learn(own, group.barrier(memory, offset), rows[at], phases, parity[at])

    def _use(self, kind: str, memory: SharedMemory, chosen: Array, *, writes: bool) -> None:
        if machine() not in self._members or not chosen.any():
            return
        group, own = self._members[machine()]
        for race in group.use(own, kind, memory, chosen, writes=writes):
            self._tell(race)

    def _complete(self, barrier: SharedMemory, kind: str, step: int) -> None:
        """What was started up to a step completes the phase of a barrier that is under way."""
        group, own = self._members[machine()]
        rows = machine().rows
        offsets = np.broadcast_to(barrier.offset.data.reshape(-1), len(rows))
        for offset in set(offsets.tolist()):
            pending = group.barrier(barrier.memory, offset).pending
            chosen, column = rows[offsets == offset], group.column(own, kind)
            pending[chosen, column] = np.maximum(pending[chosen, column], step)
