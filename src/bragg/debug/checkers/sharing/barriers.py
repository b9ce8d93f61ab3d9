"""Threads of one program that access what its other threads write, with no barrier between.

Each lane of a block belongs to a thread, and the same lane of blocks of one size to the same thread. Another lane's
element is there, or no longer needed, once the threads have met: at `tl.debug_barrier`, or where they exchange values.
A single element is stored by one thread and loaded by all of them. Of Gluon's
kernels, partitions are followed instead.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from weakref import WeakKeyDictionary

import numpy as np

from bragg.debug.checkers.checker import Checker, LaunchFindings
from bragg.debug.checkers.sharing.partitions import tell_race
from bragg.debug.findings import program_ids
from bragg.debug.flow.jitted import is_gluon
from bragg.debug.gluon.partitions import Partitions
from bragg.debug.memory.access import Access
from bragg.debug.numbers.operands import affine_of
from bragg.debug.state import Listeners, Machine, machine
from bragg.model import Severity
from bragg.model.table import Array

_HINT = "Put tl.debug_barrier() between the two lines, or give each element to the lane that it had before"
# Accesses to one tensor that are looked back at; each may take as long as several accesses.
_MOST_KEPT = 4
# Lane of a single element: of a block of one, every thread has it.
_ALL_THREADS = -1
_PERFECT = {"load": "loaded", "store": "stored"}


@dataclass(frozen=True)
class _Kept:
    access: Access
    active: Array
    step: int


@dataclass
class _Batch:
    """What the programs of one machine did since they met.

    Attributes:
        kept: By the range of memory: the last accesses.
        met: int64 [programs]: when the threads of each have met, where only some of the programs did; None: nowhere.
    """

    kept: dict[int, list[_Kept]] = field(default_factory=dict)
    met: Array | None = None


class _Threads:
    def __init__(self, record: LaunchFindings) -> None:
        self._record = record
        self._regions = record.launch.regions
        self._batches: WeakKeyDictionary[Machine, _Batch] = WeakKeyDictionary()
        self._step = 0
        self._found: dict[tuple[tuple[str, int], tuple[str, int], str], tuple[Access, str, str]] = {}

    def see(self, access: Access) -> None:
        """A load or a store; an atomic of one element tells its result to all threads."""
        now = machine()
        if access.kind == "atomic" or not len(access.buffer.flat) or now.num_warps == 1:
            if access.kind == "atomic" and not access.offset.shape:
                self.meet(now.active_programs)
            return
        self._step += 1
        batch = self._batches.setdefault(now, _Batch())
        kept = batch.kept.setdefault(self._regions.of(access.buffer).address, [])
        access.shape  # noqa: B018 - of the programs that are active now
        one = _Kept(access, now.active_programs, self._step)
        for other in kept:
            if "store" in (access.kind, other.access.kind) and not _is_lane_by_lane(other.access, access):
                self._compare(other, one, batch)
        if len(kept) == _MOST_KEPT:
            kept.pop(0)
        kept.append(one)

    def meet(self, programs: Array) -> None:
        """The threads of each program wait for each other."""
        batch, now = self._batches.get(machine()), machine()
        if batch is None:
            return
        if len(programs) == len(now.linear):
            batch.kept.clear()
            return
        if batch.met is None:
            batch.met = np.zeros(len(now.linear), np.int64)
        batch.met[np.searchsorted(now.linear, programs)] = self._step

    def _compare(self, before: _Kept, after: _Kept, batch: _Batch) -> None:
        """Find an element that the second access has in another lane than the first one."""
        first, second = before.access, after.access
        key = first.place, second.place, second.buffer.name
        if key in self._found or first.dtype.size_bytes != second.dtype.size_bytes or not _touch(first, second):
            return
        one, other = _lanes(before), _lanes(after)
        order = np.lexsort(one[:2])
        rows = [column[order] for column in one]
        # Programs are few and addresses many: both in one number, to search once.
        low = min(rows[0].min(initial=0), other[0].min(initial=0))
        span = max(rows[0].max(initial=0), other[0].max(initial=0)) - low + 1
        keys, wanted = (programs * span + addresses - low for addresses, programs, _ in (rows, other))
        if not len(keys):
            return
        at = np.searchsorted(keys, wanted).clip(max=len(keys) - 1)
        clash = (keys[at] == wanted) & (rows[2][at] != other[2])
        if batch.met is not None:
            clash &= before.step > batch.met[np.searchsorted(machine().linear, other[1])]
        if clash.any():
            lane = int(np.flatnonzero(clash)[0])
            program = program_ids(int(other[1][lane]), self._record.launch.grid)
            owners = [_owner(int(number)) for number in (other[2][lane], rows[2][at[lane]])]
            did = _PERFECT[first.kind]
            example = f"program {program}: {owners[0]} {second.kind}s what {owners[1]} has {did}"
            self._found[key] = second, did, example

    def end(self) -> None:
        """Tell what was found of tensors that no programs race for: their race is the same mistake, and the worse."""
        races = {
            one.tensor.name
            for one in self._record.report
            if (one.rule, one.kernel) == ("data-race", self._record.launch.kernel) and one.tensor is not None
        }
        for (before, after, name), (access, did, example) in self._found.items():
            if name not in races:
                self._record.at_source(
                    *after,
                    f"threads {access.kind} what others of their program have {did} in {name}, with no barrier between",
                    _HINT,
                    Severity.WARNING,
                    access.buffer,
                    example,
                    used_at=before,
                    role="other access",
                )


def _owner(lane: int) -> str:
    return "every thread" if lane == _ALL_THREADS else f"the thread of lane {lane}"


def _is_lane_by_lane(one: Access, other: Access) -> bool:
    """Both access each element in the same lane, as far as their addresses tell at once."""
    if one.shape != other.shape or one.buffer.address != other.buffer.address:
        return False
    first, second = affine_of(one.offset), affine_of(other.offset)
    if first is not None and second is not None:
        return first.strides == second.strides and np.array_equal(first.base, second.base)
    return one.offset is other.offset or np.array_equal(one.offset.data, other.offset.data)


def _touch(one: Access, other: Access) -> bool:
    """The addresses of two accesses may meet."""
    (low, high), (least, most) = (
        [edge * access.dtype.size_bytes + access.buffer.address for edge in access.offset.known_bounds()]
        for access in (one, other)
    )
    return bool(low <= most and least <= high)


def _lanes(kept: _Kept) -> tuple[Array, Array, Array]:
    """Address, program and lane of each element."""
    access = kept.access
    addresses = access.offsets * access.dtype.size_bytes + access.buffer.address
    lanes = access.lane_numbers if access.offset.numel > 1 else np.full(len(addresses), _ALL_THREADS)
    return addresses, access.programs_of(kept.active), lanes


def _watch(record: LaunchFindings) -> Listeners:
    if is_gluon(record.launch.jitted):  # Its kernels say themselves which thread has which element.
        return Listeners(asynchronous=[Partitions(partial(tell_race, record))])
    threads = _Threads(record)
    return Listeners(access=[threads.see], meeting=[threads.meet], end=[threads.end])


BARRIERS = Checker("missing-barrier", "threads of one program that access what its others write", True, _watch)
