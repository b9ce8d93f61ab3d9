"""Which program knows of what another one did: happens-before, by the scoped memory model of PTX.

An atomic that releases publishes, at its element, all that its program did and knew; read-modify-writes of others,
relaxed ones too, keep it published. One that acquires sees what is published there. But what it has seen orders the
program's later accesses only once the program decides by the value it got: waits for it in a loop, branches, masks or
addresses by it. Else the two atomics met in this order by chance, and another run has them the other way round. Atomics
of scope `cta` reach no other program; `tl.debug_barrier` orders threads within a program alone.

One thread of a program executes its atomic, and all of them store a block: Triton puts no barrier between. So what a
block stores is published only if the program's threads meet before it releases: at `tl.debug_barrier`, or where they
exchange values, in reductions, products, and to learn what an earlier atomic of a single element returned.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from bragg.debug.memory.access import Access

__all__ = ["Synchronisation"]

Array = npt.NDArray[Any]
# Of programs, by the order of their first release, the last step that is known; -1: none. It never changes once it is
# made, so that a chain of programs that take one lock shares it. 2,000 programs on one lock: 16 MB, 1 us a release.
Known = npt.NDArray[np.int32]
_NOTHING: Known = np.zeros(0, np.int32)


@dataclass(frozen=True)
class _Event:
    """An atomic of several lanes, in the order in which they take effect; or a decision of programs.

    Attributes:
        step: Of the launch.
        programs: One for each lane.
        addresses: Likewise; None: the programs decide.
        order: Of the atomic.
    """

    step: int
    programs: Array
    addresses: Array | None = None
    order: str = ""


class Synchronisation:
    """The atomics of a launch. They are only replayed when a conflict asks: most kernels with atomics have none."""

    def __init__(self) -> None:
        self._events: list[_Event] = []
        self._replayed = 0
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

    @property
    def has_events(self) -> bool:
        """Something may order programs."""
        return bool(self._events)

    def note_block(self, step: int) -> None:
        """Several threads of a program store at a step."""
        self._blocks.add(step)

    def meet(self, step: int, programs: Array) -> None:
        """The threads of each program wait for each other."""
        self._meetings.append((step, programs))

    def note(self, step: int, access: Access, addresses: Array) -> None:
        """Remember an atomic."""
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
            self._events.append(_Event(step, access.programs, addresses, access.order))
            if access.order in ("acquire", "acq_rel"):
                self._undecided |= programs

    def decide(self, step: int, programs: Array) -> None:
        """Programs decide by what their atomics have returned."""
        numbers = programs.tolist()
        if not self._undecided.isdisjoint(numbers):
            self._events.append(_Event(step, programs))
            self._undecided.difference_update(numbers)

    def orders(self, earlier: int, step: int, later: int) -> bool:
        """The later program knows what the earlier one did at a step."""
        self._replay()
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
        self._replay()
        released = self._step(self._known, later, earlier)
        if released >= step:
            return "the other program's threads do not wait for each other before it releases: add tl.debug_barrier()"
        if self._released.get(earlier, -1) < step:
            if self._narrow_scopes:
                return "atomics of scope cta order nothing between programs"
            if self._any.get(earlier, -1) < step:
                return "the other program has no atomic after it" if self._events else ""
            relaxed = self._relaxed.get(earlier, -1) >= step
            return f"the other program's atomics after it {'are relaxed' if relaxed else 'release nothing'}"
        if self._step(self._pending, later, earlier) >= step:
            return "the program does not decide by what its atomic returns, so it may come first as well"
        if later not in self._pending:
            what = "has relaxed atomics alone" if later in self._relaxed else "acquires nothing"
            return f"the program {what} before it"
        return "no atomic of the program reads what the other one released after it"

    def _step(self, knowing: dict[int, Known], later: int, earlier: int) -> int:
        """The last step of one program that another one knows; -1: none."""
        known, number = knowing.get(later, _NOTHING), self._numbers.get(earlier)
        return -1 if number is None or number >= len(known) else int(known[number])

    def _replay(self) -> None:
        for event in self._events[self._replayed :]:
            programs = event.programs.tolist()
            if event.addresses is None:
                for program in programs:
                    before, new = self._known.get(program, _NOTHING), self._pending.get(program, _NOTHING)
                    self._known[program] = _joined(before, new)
                continue
            for address, program in zip(event.addresses.tolist(), programs, strict=True):
                self._meet(address, program, event)
        self._replayed = len(self._events)

    def _meet(self, address: int, program: int, event: _Event) -> None:
        published = self._published.get(address, _NOTHING)
        self._any[program] = event.step
        if event.order == "relaxed":
            self._relaxed[program] = event.step
        if event.order in ("acquire", "acq_rel"):
            self._pending[program] = _joined(self._pending.get(program, _NOTHING), published)
        if event.order in ("release", "acq_rel"):
            number = self._numbers.setdefault(program, len(self._numbers))
            together = _joined(published, self._known.get(program, _NOTHING))
            new = np.full(max(len(together), number + 1), -1, np.int32)
            new[: len(together)] = together
            new[number] = event.step
            self._published[address] = new
            self._released[program] = event.step


def _joined(one: Known, other: Known) -> Known:
    """What both know together."""
    few, many = (one, other) if len(one) < len(other) else (other, one)
    if one is other or not len(few) or (few <= many[: len(few)]).all():
        return many
    new: Known = many.copy()
    np.maximum(few, new[: len(few)], out=new[: len(few)])
    return new
