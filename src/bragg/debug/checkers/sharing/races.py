"""Programs that access one element at the same time, at least one of them writing."""

from __future__ import annotations

import linecache
import math
from typing import Any

import numpy as np

from bragg.debug.checkers.checker import Checker, LaunchFindings
from bragg.debug.checkers.sharing.whole_blocks import WholeBlocks, column
from bragg.debug.expressions import accesses_at, changes_what_it_loads, comes_before
from bragg.debug.findings import program_ids
from bragg.debug.host.launch import Launch
from bragg.debug.lazy import lazy
from bragg.debug.memory.access import Access
from bragg.debug.memory.polls import Test
from bragg.debug.memory.shadow import NOBODY, SEVERAL, Cells, Region
from bragg.debug.memory.shared_reads import Read, SharedReads
from bragg.debug.memory.synchronisation import (
    ACQUIRES_NOTHING,
    ACQUIRES_RELAXED,
    NO_BARRIER,
    RELEASES_NOTHING,
    RELEASES_RELAXED,
    Synchronisation,
)
from bragg.debug.numbers.operands import affine_of
from bragg.debug.numbers.rounding import encode
from bragg.debug.state import Listeners, machine
from bragg.model import Severity
from bragg.model.table import Array

Place = tuple[str, int]
"""File and line."""

_HINT = "Let each element belong to one program, or use tl.atomic_add and the like"
_BARRIER_HINT = "Put tl.debug_barrier() between the access of the other side and the atomic that releases it"
_PLAIN_STORE = "a plain store of what atomics change"
# By what is missing for an order; that programs are to have one, a kernel without atomics does not show.
_ORDER_HINTS = {
    why: f"If a flag or a lock orders these programs, {what}; else let each element belong to one program"
    for why, what in {
        RELEASES_RELAXED: 'give the atomic that sets it sem="release" in place of "relaxed"',
        RELEASES_NOTHING: 'give the atomic that sets it sem="release"',
        ACQUIRES_RELAXED: 'give the atomic that waits for it sem="acquire" in place of "relaxed"',
        ACQUIRES_NOTHING: 'wait for it by tl.atomic_add(flag, 0, sem="acquire"), not by tl.load',
        _PLAIN_STORE: 'set it by tl.atomic_xchg(flag, value, sem="release"), not by tl.store',
    }.items()
}
_SAME_VALUE = "writes too, the same value this time"


class _Order:
    """Which accesses come before the current step.

    Apart from the detector, so that no circle keeps what a launch has used until the garbage collector finds it.
    """

    def __init__(self, sync: Synchronisation) -> None:
        self._sync = sync
        self.step = 0

    def holds(self, program: int, other: int, step: int) -> bool:
        """A program comes after what another one did at a step."""
        return other != SEVERAL and self._sync.orders(other, step, program, self.step)


class _Kinds:
    """Notes in a launch that atomics and other accesses go to one tensor."""

    def __init__(self, launch: Launch) -> None:
        self._launch = launch
        self._seen: dict[int, bool] = {}

    def note(self, region: Region, access: Access) -> None:
        is_atomic = access.kind == "atomic"
        self._launch.mixes_atomics |= self._seen.setdefault(region.address, is_atomic) is not is_atomic


class _Alone:
    """The only program of a launch races with none; its lanes may meet where an address holds what was loaded."""

    def __init__(self, record: LaunchFindings) -> None:
        self._record, self._kinds = record, _Kinds(record.launch)

    def see(self, access: Access) -> None:
        self._kinds.note(self._record.launch.regions.of(access.buffer), access)
        if access.kind == "store" and _may_meet(access):
            self._detector.see(access)

    @lazy
    def _detector(self) -> _Detector:
        return _Detector(self._record)


class _Detector:
    def __init__(self, record: LaunchFindings) -> None:
        self._record = record
        self._places: list[tuple[str, int]] = []
        self.sync = Synchronisation()
        self._order = _Order(self.sync)
        self._blocks = WholeBlocks(self._order.holds)
        self._regions = record.launch.regions
        self._cells: dict[int, Cells] = {}
        self._reads: dict[int, list[Read]] = {}
        self._shared: dict[int, SharedReads] = {}
        self._kinds = _Kinds(record.launch)
        self._told: set[tuple[Place, Place]] = set()

    def see(self, access: Access) -> None:
        self._order.step += 1
        if access.kind != "load" and machine().num_warps > 1 and _spreads(access):
            self.sync.note_block(self._order.step)
        place = self._place(access.place)
        buffer = access.buffer
        if not len(buffer.flat):
            return
        region = self._region(access)
        self._kinds.note(region, access)
        if access.kind == "load" and region.address not in self._cells and not access.order:
            self._reads.setdefault(region.address, []).append(self._kept(access, place))
            return
        cells = self._cells_of(region)
        if access.kind == "load" and not access.is_strong:
            self._shared[region.address].add(self._kept(access, place), cells)
        if access.kind == "atomic":
            self.sync.note(self._order.step, access, _addresses(access))
        if access.kind == "store" and _may_meet(access):
            cells.settle()
            self._see_lanes(cells, access, place)
        elif not self._blocks.see(cells, access, place, self._order.step):
            self._see_lanes(cells, access, place)

    def decide(self, programs: Array) -> None:
        """Programs decide by what atomics have returned."""
        self._order.step += 1
        self.sync.decide(self._order.step, programs)

    def compare(self, name: str, left: Any, right: Any, outcome: Array) -> None:
        """A program may have compared what its last atomic returned: each side as written, and as a number."""
        programs = machine().active_programs
        if len(programs) != 1 or outcome.size != 1:
            return
        for (result, _), (_, number), is_swapped in ((left, right, False), (right, left, True)):
            if number.data.size == 1 and number.dtype.is_int():
                test = Test.of(name, int(number.data.flat[0]), bool(outcome.flat[0]), is_swapped=is_swapped)
                self.sync.compared(int(programs[0]), result, test)

    def meet(self, programs: Array) -> None:
        """The threads of each program wait for each other."""
        self._order.step += 1
        self.sync.meet(self._order.step, programs)

    def _place(self, place: tuple[str, int]) -> int:
        if not self._places or self._places[-1] != place:
            if place in self._places:
                return self._places.index(place)
            self._places.append(place)
        return len(self._places) - 1

    def _kept(self, access: Access, place: int) -> Read:
        closed = access.closed
        programs = machine().active_programs if closed is not None else access.programs
        offsets = None if closed is not None else access.offsets
        size = access.dtype.size_bytes
        return Read(closed, offsets, programs, size, access.buffer.address, self._order.step, place)

    def _region(self, access: Access) -> Region:
        """The range of memory of an access, with cells as small as its elements."""
        region = self._regions.of(access.buffer)
        granule = math.gcd(region.granule, access.dtype.size_bytes)
        if granule < region.granule:
            region.granule = granule
            if region.address in self._cells:
                self._cells[region.address].refine(granule)
        return region

    def _cells_of(self, region: Region) -> Cells:
        if region.address not in self._cells:
            cells = self._cells[region.address] = Cells(region)
            shared = self._shared[region.address] = SharedReads(_lanes_of)
            for read in self._reads.pop(region.address, []):
                self._mark_read(cells, read)
                shared.add(read, cells)
        return self._cells[region.address]

    def _mark_read(self, cells: Cells, read: Read) -> None:
        block = cells.block(read.closed, read.address, read.size)
        if block is not None and read.closed is not None:
            block.mark_read(column(read.programs, read.closed), read.step, read.place)
            return
        index, who = _lanes_of(cells, read)
        cells.mark_read(index, who, read.step, read.place)

    def _see_lanes(self, cells: Cells, access: Access, place: int) -> None:
        lanes = np.arange(len(access.offsets))
        size = access.dtype.size_bytes
        index, who, lanes = cells.lanes(access.buffer.address, size, access.offsets, access.programs, lanes)
        is_plain = not access.is_strong
        writer = cells.writer[index]
        clash = (writer != NOBODY) & (writer != who)
        if not is_plain:
            clash &= ~cells.is_atomic[index]
        same = self._is_same_value(access, lanes) if access.kind == "store" and clash.any() else np.zeros_like(clash)
        steps, places = cells.write_step[index], cells.write_place[index]
        self._tell(access, clash & ~same, lanes, writer, steps, places, "writes")
        if not _is_constant(access):
            self._tell(access, clash & same, lanes, writer, steps, places, _SAME_VALUE)
        if is_plain:
            self._see_changers(cells, access, index, who, lanes)
        if access.kind == "load":
            if is_plain:
                cells.mark_read(index, who, self._order.step, place)
            return
        reader = cells.reader[index]
        clash = (reader != NOBODY) & (reader != who) & (reader != SEVERAL)
        self._tell(access, clash, lanes, reader, cells.read_step[index], cells.read_place[index], "reads")
        shared = reader == SEVERAL
        if shared.any():
            self._tell_shared(cells, access, index, who, lanes, shared)
        self._write(cells, access, index, who, lanes, place, is_plain)

    def _see_changers(self, cells: Cells, access: Access, index: Array, who: Array, lanes: Array) -> None:
        """Tell of atomics before the last one: of a sum, the program that looks at it is often the last."""
        changer = cells.changer[index]
        clash = (changer != NOBODY) & (changer != who)
        self._tell(access, clash, lanes, changer, cells.change_step[index], cells.change_place[index], "writes")

    def _write(
        self, cells: Cells, access: Access, index: Array, who: Array, lanes: Array, place: int, is_plain: bool
    ) -> None:
        if not is_plain:
            other = index[(cells.writer[index] != who) & cells.is_atomic[index]]
            self._keep_changer(cells, other, cells.writer[other], cells.write_step[other], cells.write_place[other])
        cells.writer[index] = who
        lost = cells.writer[index] != who
        if not is_plain:
            self._keep_changer(cells, index[lost], who[lost], self._order.step, place)
        else:
            cells.changer[index] = NOBODY
            self._see_lanes_that_meet(access, index, who, lanes)
            if lost.any():
                winner = np.empty(len(cells.writer), np.intp)
                winner[index] = np.arange(len(index))
                same = _writes_equal(access, lanes, lanes[winner[index]])
                steps, places = np.full(len(index), self._order.step), np.full(len(index), place)
                self._tell(access, lost & ~same, lanes, cells.writer[index], steps, places, "writes")
                if not _is_constant(access):
                    self._tell(access, lost & same, lanes, cells.writer[index], steps, places, _SAME_VALUE)
        cells.write_step[index] = self._order.step
        cells.write_place[index] = place
        cells.is_atomic[index] = not is_plain
        cells.reader[index] = NOBODY

    @staticmethod
    def _keep_changer(cells: Cells, index: Array, who: Array, steps: Array | int, places: Array | int) -> None:
        cells.changer[index] = who
        cells.change_step[index] = steps
        cells.change_place[index] = places

    def _tell_shared(self, cells: Cells, access: Access, index: Array, who: Array, lanes: Array, shared: Array) -> None:
        """Tell of elements that several programs have read, where one of them need not come before."""
        reads = self._shared[cells.address]
        steps, places = cells.read_step[index], cells.read_place[index]
        if not (self.sync.has_events and reads.is_complete):
            self._tell(access, shared, lanes, cells.reader[index], steps, places, "reads")
            return
        wanted, which = np.unique(index[shared], return_inverse=True)
        writers = np.zeros(len(wanted), who.dtype)
        writers[which.ravel()] = who[shared]
        for read, at, programs in reads.of(cells, wanted):
            rival = np.full(len(wanted), NOBODY, np.int64)
            other = programs != writers[at]
            rival[at[other]] = programs[other]
            clash = np.zeros(len(index), bool)
            clash[shared] = rival[which.ravel()] != NOBODY
            rivals = np.full(len(index), NOBODY, np.int64)
            rivals[shared] = rival[which.ravel()]
            steps, places = np.full(len(index), read.step), np.full(len(index), read.place)
            self._tell(access, clash, lanes, rivals, steps, places, "reads")

    def _see_lanes_that_meet(self, access: Access, index: Array, who: Array, lanes: Array) -> None:
        """Lanes of one program that store different values in one element, or each change what they have loaded."""
        if access.kind == "atomic" or not _may_meet(access):
            return
        order = np.lexsort((lanes, who, index))
        before, after = order[:-1], order[1:]
        meets = (index[before] == index[after]) & (who[before] == who[after]) & (lanes[before] != lanes[after])
        if not meets.any():
            return
        self._record.launch.lanes_meet |= not _is_one_value(access)
        differs = ~_writes_equal(access, lanes[before[meets]], lanes[after[meets]])
        if not differs.any() and changes_what_it_loads(*access.place):
            meets[meets] = ~self._is_same_value(access, lanes[after[meets]])
            what = "lanes of one program load and change one element, and only one change is kept"
        else:
            meets[meets] = differs
            what = "lanes of one program write different values to one element"
        if not meets.any():
            return
        own = np.unique(lanes[after[meets]])
        self._record.at_access(
            access,
            access.programs[own],
            access.lane_numbers[own],
            access.offsets[own],
            f"data race on {access.buffer.name}: {what}",
            "Let the indices of a store differ, or combine values first: tl.atomic_add, tl.atomic_max and the like",
        )

    def _is_same_value(self, access: Access, lanes: Array) -> Array:
        """Lanes that write what is there already."""
        there = access.buffer.read(access.offsets[lanes], access.dtype)
        new = access.lane_values()[lanes]
        return encode(there, access.dtype) == encode(new, access.dtype)  # type: ignore[no-any-return]

    def _tell(
        self, access: Access, clash: Array, lanes: Array, other: Array, steps: Array, places: Array, what: str
    ) -> None:
        if not clash.any():
            return
        chosen = np.flatnonzero(clash)
        programs = access.programs[lanes[chosen]]
        pairs = np.stack([programs, other[chosen], steps[chosen]], axis=1)
        if (pairs == pairs[0]).all():  # As under a lock; what follows takes 10 times as long.
            if self._order.holds(*pairs[0].tolist()):
                return
        else:
            distinct, which = np.unique(pairs, axis=0, return_inverse=True)
            is_race = np.array([not self._order.holds(*one) for one in distinct.tolist()])
            chosen = chosen[is_race[which.ravel()]]
        if not len(chosen):
            return
        place, rival = self._places[int(places[chosen[0]])], int(other[chosen[0]])
        own, mine = lanes[chosen], access.programs[lanes[chosen]]
        severity = Severity.WARNING if what == _SAME_VALUE else Severity.ERROR
        group = *self._blamed(access.place, place), access.buffer.name, severity
        rivals = np.unique(other[chosen][other[chosen] >= 0])
        if self._record.repeats(group, mine, access.lane_numbers[own], rivals):
            return
        why, hint = self._reason(access, int(mine[0]), place, rival, int(steps[chosen[0]]))
        verb = {"load": "reads", "store": "writes", "atomic": "atomically changes"}[access.kind]
        self._record.at_access(
            access,
            mine,
            access.lane_numbers[own],
            access.offsets[own],
            f"data race on {access.buffer.name}: one program {verb} an element that another one {what}, in no order",
            hint,
            severity,
            other={
                "program": "several" if rival == SEVERAL else list(program_ids(rival, self._record.launch.grid)),
                "file": place[0],
                "line": place[1],
                "code": linecache.getline(*place).strip(),
                "why": why,
            },
            rivals=rivals,
            group=group,
        )

    def _reason(self, access: Access, mine: int, there: Place, rival: int, step: int) -> tuple[str, str]:
        """Why a program does not come after what another one did at a step, and what to do about it."""
        why = "" if rival == SEVERAL else self.sync.why_not(rival, step, mine)
        if not why or why == NO_BARRIER:
            return why, _BARRIER_HINT if why else _HINT
        own, other = (mine, self._order.step), (rival, step)
        for line, (first, second) in ((access.place, (own, other)), (there, (other, own))):
            atomic = self.sync.early_release(*first, *second)
            if atomic is not None and comes_before(atomic, line):
                move = f"Move line {line[1]} before the atomic in line {atomic[1]}, with tl.debug_barrier() between"
                return f"the atomic in line {atomic[1]} releases it before line {line[1]} has done it", move
        return why, _ORDER_HINTS.get(_plain_side(access, there) or why, _HINT)

    def _blamed(self, here: Place, there: Place) -> Place:
        """The line that a clash of two lines is told at.

        Who comes first is chance: the same two lines are one race, and so is all that one line does to a tensor. A
        store whose race with a load is known, and that meets itself in another program, is the same lost update.
        """
        if (there, here) in self._told:
            return there
        if here == there:
            return next((one for one, other in self._told if other == here), here)
        self._told.add((here, there))
        return here


def _plain_side(access: Access, there: Place) -> str:
    """What is wrong with the side of a race that is no atomic where the other one is; empty: both are, or none."""
    sides = (access.kind, access.place), *((kind, there) for kind in ("atomic", "store", "load"))
    kinds = {kind for kind, place in sides if accesses_at(*place, kind, access.buffer.name)}
    if "atomic" not in kinds or len(kinds) != 2:
        return ""
    return _PLAIN_STORE if "store" in kinds else ACQUIRES_NOTHING


def _addresses(access: Access) -> Array:
    return access.offsets * access.dtype.size_bytes + access.buffer.address


def _is_constant(access: Access) -> bool:
    """All programs store the same by the way it is computed, as a flag is set: harmless."""
    return access.value is not None and access.value.programs == 1


def _is_one_value(access: Access) -> bool:
    """All lanes of a program store the same by the way it is computed: one element, broadcast."""
    return access.value is not None and not any(access.value.data.strides[1:])


def _may_meet(access: Access) -> bool:
    """Two lanes of a program may access one element."""
    block = access.closed or affine_of(access.offset)
    return block is None or block.meets()


def _lanes_of(cells: Cells, read: Read) -> tuple[Array, Array]:
    """The cells of a load, and the program of each."""
    if read.closed is not None:
        offsets = read.closed.array(np.dtype(np.int64))
        programs = np.broadcast_to(column(read.programs, read.closed), offsets.shape)
    else:
        assert read.offsets is not None
        offsets, programs = read.offsets, read.programs
    index, who, _ = cells.lanes(read.address, read.size, offsets.ravel(), programs.ravel())
    return index, who


def _spreads(access: Access) -> bool:
    """Several threads of a program take part: a block of more than one element."""
    closed = access.closed
    if closed is not None:
        return math.prod(closed.shape) > 1
    return len(access.offsets) > len(np.unique(access.programs))


def _writes_equal(access: Access, lanes: Array, rivals: Array) -> Array:
    if access.kind == "atomic":  # Of a scope that does not reach other programs: what it writes depends on their order.
        return np.zeros(len(lanes), bool)
    values = encode(access.lane_values(), access.dtype)
    return values[lanes] == values[rivals]  # type: ignore[no-any-return]


def _watch(record: LaunchFindings) -> Listeners:
    if record.launch.programs == 1:
        return Listeners(access=[_Alone(record).see])
    detector = _Detector(record)
    return Listeners(
        access=[detector.see],
        decision=[detector.decide],
        meeting=[detector.meet],
        returned=[detector.sync.returned],
        compared=[detector.compare],
    )


RACES = Checker("data-race", "programs that access one element at the same time, one of them writing", True, _watch)
