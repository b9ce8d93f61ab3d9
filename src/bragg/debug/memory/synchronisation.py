"""Which program knows of what another one did: happens-before, by the scoped memory model of PTX.

An atomic that releases publishes, at its element, all that its program did and knew; read-modify-writes of others,
relaxed ones too, keep it published. One that acquires sees what is published there. But what it has seen orders the
program's later accesses only once the program decides by the value it got: waits for it in a loop, branches, masks or
addresses by it. Else the two atomics met in this order by chance, and another run has them the other way round. Who
compares what it reads, as a wait does, knows what the earliest value that compares alike tells (`polls`). Atomics of
scope `cta` reach no other program; `tl.debug_barrier` orders threads within a program alone.

One thread of a program executes its atomic, and all of them store a block: Triton puts no barrier between. So what a
block stores is published only if the program's threads meet before it releases: at `tl.debug_barrier`, or where they
exchange values, in reductions, products, and to learn what an earlier atomic of a single element returned.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from bragg.debug.memory.access import Access
from bragg.debug.memory.polls import AcquiringRead, Change, Known, Look, Poll, Test
from bragg.debug.memory.releases import Releases
from bragg.debug.memory.storage import Buffer
from bragg.debug.numbers.dtypes import DType
from bragg.model.table import Array

NO_BARRIER = "the other program's threads do not wait for each other before it releases"
RELEASES_NOTHING = "the other program's atomics after it release nothing"
RELEASES_RELAXED = "the other program's atomics after it are relaxed"
ACQUIRES_NOTHING = "the program acquires nothing before it"
ACQUIRES_RELAXED = "the program has relaxed atomics alone before it"
_NOTHING: Known = np.zeros(0, np.int32)


@dataclass(frozen=True)
class _Event:
    """An atomic of several lanes, in the order in which they take effect; or a decision of programs.

    Attributes:
        step: Of the launch.
        programs: One for each lane.
        addresses: One for each lane; None: the programs decide.
        order: Of the atomic.
        look: What it found, of one lane; of a decision: the atomic whose result was compared; None: not known.
        tests: The comparisons.
        place: File and line of the atomic.
    """

    step: int
    programs: Array
    addresses: Array | None = None
    order: str = ""
    look: Look | None = None
    tests: tuple[Test, ...] = ()
    place: tuple[str, int] = ("", 0)


class Synchronisation:
    """The atomics of a launch. They are only replayed when a conflict asks: most kernels with atomics have none.

    Attributes:
        has_events: Something may order programs.
    """

    def __init__(self) -> None:
        self._events: list[_Event] = []
        self._noted: _Event | None = None
        self.has_events = False
        self._undecided: set[int] = set()
        self._narrow_scopes = False
        self._known: dict[int, Known] = {}
        self._pending: dict[int, Known] = {}
        self._published: dict[int, Known] = {}
        self._numbers: dict[int, int] = {}
        self._released: dict[int, int] = {}
        self._relaxed: dict[int, int] = {}
        self._any: dict[int, int] = {}
        self._blocks: set[int] = set()
        self._meetings: list[tuple[float, Array]] = []
        self._met: dict[int, list[float]] = {}
        self._last: dict[int, Look] = {}
        self._polls: dict[int, Poll] = {}
        self._changes: dict[int, list[Change]] = {}
        self._reads: dict[int, list[AcquiringRead]] = {}
        self._seen: dict[tuple[int, int], tuple[list[Change], int]] = {}
        self._late: dict[int, Known] = {}
        self._releases = Releases()

    def note_block(self, step: int) -> None:
        """Several threads of a program store at a step."""
        self._blocks.add(step)

    def meet(self, step: int, programs: Array) -> None:
        """The threads of each program, int64 [programs], wait for each other."""
        self._meetings.append((step, programs))

    def note(self, step: int, access: Access, addresses: Array) -> None:
        """Remember an atomic, which accessed `addresses`: int64 [distinct]."""
        self._noted = None
        if not access.offset.shape:
            self._meetings.append((step, access.programs))
        elif access.order in ("release", "acq_rel"):  # Each thread releases what it has stored itself.
            self._meetings.append((step - 0.5, access.programs))
        if access.scope == "cta":
            self._narrow_scopes = True
            return
        # Sums of floats are not signals, and they are many.
        programs = set(access.programs.tolist())
        if access.dtype.is_int() or len(addresses) <= len(programs):
            look = self._look(access, addresses)
            self._noted, self.has_events = (
                _Event(step, access.programs, addresses, access.order, look, place=access.place),
                True,
            )
            self._events.append(self._noted)
            if access.order in ("acquire", "acq_rel"):
                self._undecided |= programs

    def _look(self, access: Access, addresses: Array) -> Look | None:
        """What an atomic of one lane finds; None: it has more of them."""
        if len(addresses) != 1 or not access.dtype.is_int():
            for one in self._last.values():
                one.new = one.memory()
            self._last.clear()
            return None
        memory = partial(_number_at, access.buffer, access.offsets, access.dtype)
        look, address = Look(memory(), memory), int(addresses[0])
        before = self._last.get(address)
        if before is not None:
            before.new = look.old
        self._last[address] = look
        return look

    def returned(self, result: Any) -> None:
        """The last atomic that was noted has returned."""
        event, self._noted = self._noted, None
        if event is not None and event.look is not None and event.addresses is not None:
            self._polls[int(event.programs[0])] = Poll(event.look, result)

    def compared(self, program: int, result: Any, test: Test) -> None:
        """A program has compared what an atomic returned."""
        poll = self._polls.get(program)
        if poll is not None and poll.result is result:
            poll.tests.append(test)

    def decide(self, step: int, programs: Array) -> None:
        """Programs, int64 [deciding], decide by what their atomics have returned."""
        numbers = programs.tolist()
        if self._undecided.isdisjoint(numbers):
            return
        poll = self._polls.get(numbers[0]) if len(numbers) == 1 else None
        if poll is not None and len(poll.tests) > poll.n_decided:
            poll.n_decided = len(poll.tests)
            self._events.append(_Event(step, programs, look=poll.look, tests=tuple(poll.tests)))
            return  # It may decide once more, by the value itself.
        self._events.append(_Event(step, programs))
        self._undecided.difference_update(numbers)

    def orders(self, earlier: int, step: int, later: int, now: int) -> bool:
        """The later program knows at a step, the current one, what the earlier one did at another."""
        self._replay(now)
        released = self._step(self._known, later, earlier)
        return released >= step and self._is_whole(earlier, step, released)

    def _is_whole(self, program: int, step: int, released: int) -> bool:
        """All threads of a program have done what it did at a step when it released."""
        if step not in self._blocks:
            return True
        for met, programs in self._meetings:
            for one in programs.tolist():
                self._met.setdefault(one, []).append(met)
        self._meetings.clear()
        meetings = self._met.get(program, [])
        after = bisect_right(meetings, step)
        return after < len(meetings) and meetings[after] < released

    def why_not(self, earlier: int, step: int, later: int) -> str:
        """What is missing for two programs to be ordered."""
        released = self._step(self._known, later, earlier)
        if released >= step:
            return NO_BARRIER
        if self._released.get(earlier, -1) < step:
            if self._narrow_scopes:
                return "atomics of scope cta order nothing between programs"
            if self._any.get(earlier, -1) < step:
                return "the other program has no atomic after it" if self.has_events else ""
            return RELEASES_RELAXED if self._relaxed.get(earlier, -1) >= step else RELEASES_NOTHING
        if self._step(self._late, later, earlier) >= step:
            return "the condition that the program waits for may hold before the other one has released this"
        if self._step(self._pending, later, earlier) >= step:
            return "the program does not decide by what its atomic returns, so it may come first as well"
        if later not in self._pending:
            return ACQUIRES_RELAXED if later in self._relaxed else ACQUIRES_NOTHING
        return "no atomic of the program reads what the other one released after it"

    def early_release(self, one: int, step: int, other: int, other_step: int) -> tuple[str, int] | None:
        """The line where a program releases to another one what it does only after that; None: nowhere.

        Args:
            one: The program.
            step: When it accesses an element.
            other: Another one that accesses the element, which has received by then what the first one had released.
            other_step: When it does so.
        """
        released = self._step(self._known, other, one)
        if not 0 <= released < step or self._releases.has_decided_since(other, other_step):
            return None
        return self._releases.before(one, released, step)

    def _step(self, knowing: dict[int, Known], later: int, earlier: int) -> int:
        """The last step of one program that another one knows; -1: none."""
        known, number = knowing.get(later, _NOTHING), self._numbers.get(earlier)
        return -1 if number is None or number >= len(known) else int(known[number])

    def _replay(self, now: int) -> None:
        events, self._events = self._events, []
        for event in events:
            programs = event.programs.tolist()
            if event.addresses is None:
                for program in programs:
                    self._decide(program, event)
                continue
            for address, program in zip(event.addresses.tolist(), programs, strict=True):
                self._meet(address, program, event, is_done=event.step < now)

    def _decide(self, program: int, event: _Event) -> None:
        """A program knows now what its atomics have acquired; of one that it compares, what any run tells."""
        self._releases.decide(program, event.step)
        already = self._known.get(program, _NOTHING)
        known = _joined(already, self._pending.get(program, _NOTHING))
        reads = self._reads.pop(program, [])
        before = next((read for read in reads if read.tests), None)
        for read in reads:
            if event.look is None or not (read.look is event.look or read.tests):
                known = _joined(known, read.published)
            elif read.look is event.look:
                has_learned = before is None or not np.array_equal(known, already)
                is_new = has_learned or not read.is_next_trip(before, event.tests, program)
                if is_new:
                    known = _joined(known, self._surely_published(program, read, event.tests))
                    self._late[program] = _joined(self._late.get(program, _NOTHING), read.published)
                read.tests = event.tests
                self._reads[program] = [read]
        self._known[program] = known

    def _surely_published(self, program: int, read: AcquiringRead, tests: tuple[Test, ...]) -> Known:
        key = program, read.address
        history, seen = self._seen.get(key, (read.history, 0))
        place = read.earliest(
            tests,
            seen if history is read.history else 0,
            lambda one: one.program == program or self._step(self._known, program, one.program) >= one.step >= 0,
        )
        self._seen[key] = read.history, place
        return read.history[place].published

    def _meet(self, address: int, program: int, event: _Event, *, is_done: bool) -> None:
        published = self._published.get(address, _NOTHING)
        look, changes = event.look, self._changes_of(address, event.look)
        only_looks = look is not None and is_done and look.changes_nothing
        self._any[program] = event.step
        if event.order == "relaxed":
            self._relaxed[program] = event.step
        if event.order in ("acquire", "acq_rel"):
            if look is not None and only_looks:
                self._reads.setdefault(program, []).append(
                    AcquiringRead(look, address, changes, len(changes) - 1, published)
                )
            else:
                self._pending[program] = _joined(self._pending.get(program, _NOTHING), published)
        if event.order in ("release", "acq_rel"):
            number = self._numbers.setdefault(program, len(self._numbers))
            together = _joined(published, self._known.get(program, _NOTHING))
            if number < len(together):
                new = together.copy()
            else:
                new = np.full(number + 1, -1, np.int32)
                new[: len(together)] = together
            new[number] = event.step
            self._published[address] = published = new
            self._released[program] = event.step
            self._releases.release(program, event.step, event.place)
        if look is not None and not only_looks:
            changes.append(Change(look, look.old, published, program, event.step))

    def _changes_of(self, address: int, look: Look | None) -> list[Change]:
        """The changes of an element; they begin anew where something else than an atomic of one lane has changed it."""
        changes = self._changes.get(address, [])
        if look is None:
            self._changes.pop(address, None)
        elif not changes or changes[-1].value != look.old:
            changes = self._changes[address] = [Change(None, look.old, self._published.get(address, _NOTHING))]
        return changes


def _number_at(buffer: Buffer, offsets: Array, dtype: DType) -> int:
    return int(buffer.read(offsets, dtype)[0])


def _joined(one: Known, other: Known) -> Known:
    """What both know together."""
    few, many = (one, other) if len(one) < len(other) else (other, one)
    if one is other or not len(few) or (few <= many[: len(few)]).all():
        return many
    new: Known = many.copy()
    np.maximum(few, new[: len(few)], out=new[: len(few)])
    return new
