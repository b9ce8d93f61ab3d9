"""Values that nobody wrote: lanes that a mask left out without a value, and memory of `empty`.

What such a lane holds may cancel out in sorts that exchange elements by `x ^ (x ^ y)`. So what is stored after that is
only told of when the launch, executed again with other values in these lanes, leaves other results.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from bragg.debug.checkers.again.replay import Replay
from bragg.debug.checkers.checker import Checker, LaunchFindings, Source
from bragg.debug.checkers.early_reads import EarlyReads
from bragg.debug.expressions import access_text, feeding
from bragg.debug.faults import KernelFault
from bragg.debug.findings import TensorFacts
from bragg.debug.flow.place import kernel_line
from bragg.debug.host.launch import Launch
from bragg.debug.memory.access import Access
from bragg.debug.memory.emptiness import unwritten
from bragg.debug.memory.storage import Buffer
from bragg.debug.state import Listeners, machine
from bragg.debug.texts.neutral import filler_hint, is_computed_with
from bragg.debug.values import CHOSEN, LOADS, UNDEFINED, UNWRITTEN, lift_array
from bragg.model import Severity
from bragg.model.table import Array

_USES = {
    "store": "is stored",
    "load": "decides an address or a mask",
    "atomic": "decides an address or a mask",
    "condition": "decides an `if` or a loop",
    "histogram": "is counted",
}

_MASKED = "a value of a masked-off lane that was loaded without `other` {}"
# Undefined though no load is masked: the call of a function whose other ways return a value, or inline assembly.
_NOT_GIVEN = (
    "a value that is undefined on this way {}",
    "Return a value on every way through the function, and let inline assembly set all that it returns",
)
_NEVER = (
    "a value of memory that nobody has written {}",
    "Write the tensor first, or make it with zeros instead of empty",
)
_TOO_EARLY = "Let it wait until another program has written these elements; zeros would hide that it comes early"

# Other runs, in which masked lanes hold other values.
_RUNS = 2

# By file and line, and by tensor: a load, and its mark in taints.
Sources = dict[tuple[str, int], dict[str, tuple[Source, int]]]


class _Effects:
    """Whether what undefined lanes hold reaches the results of a launch.

    Attributes:
        held: Adds the findings that count if it does.
        has_undefined: There are such lanes.
    """

    def __init__(self, launch: Launch) -> None:
        self.held: list[Callable[[], None]] = []
        self.has_undefined = False
        self._launch, self._replay, self._is_late = launch, Replay(launch), False

    def see(self, access: Access) -> None:
        """A store or an atomic: what is there before is needed for another run."""
        if self.has_undefined and not self._is_late:
            self._replay.see(access)
        else:
            self._is_late = True

    def judge(self) -> None:
        """The launch has ended."""
        if self.held and (self._is_late or any(map(self._differs, range(_RUNS)))):
            for add in self.held:
                add()

    def _differs(self, seed: int) -> bool:
        def run(listeners: Listeners) -> None:
            listeners.garbage = np.random.default_rng(seed)
            self._launch.run_again(listeners)

        try:
            return bool(self._replay.differences(run))
        except KernelFault:
            return True


class _Watch:
    """Follows loads that give what nobody wrote, until it is used.

    Args:
        record: Gets what is found in the launch.
    """

    def __init__(self, record: LaunchFindings) -> None:
        launch = record.launch
        self._record, self._effects = record, _Effects(launch)
        self._masked: Sources = {}
        self._never: Sources = {}
        self._marks: dict[tuple[tuple[str, int], str], int] = {}
        # Places of loads of which some lanes had been written.
        self._partly: set[tuple[str, int]] = set()
        self._early: dict[int, EarlyReads] = {}
        self._can_wait = launch.is_in_host_memory and launch.only is None and not record.report.is_told_at_once

    def listeners(self) -> Listeners:
        """Memory of `empty` is only looked at where the launch has such tensors."""
        access = [self._see_mask, self._see_memory] if self._record.launch.empty else [self._see_mask]
        return Listeners(tainted=[self._use], access=[*access], end=[self._effects.judge, self._settle])

    def _use(self, use: str, taint: Array, bit: int, _buffer: Buffer | None) -> None:
        if bit not in (UNDEFINED, CHOSEN, UNWRITTEN) or use not in _USES:
            return
        sources, (message, hint) = (self._never, _NEVER) if bit == UNWRITTEN else (self._masked, _NOT_GIVEN)
        if bit != UNWRITTEN and self._masked:
            message = _MASKED
        lanes = (taint & bit) != 0
        is_copy = use == "store" and bit == UNWRITTEN and not machine().operations
        is_in_doubt = self._can_wait and use == "store" and bit != UNWRITTEN and machine().may_cancel
        for source, own in _blamed(sources, taint * lanes):
            is_harmless = is_copy and source is not None and source.place not in self._partly and _is_moved(source)
            severity = Severity.NOTE if is_harmless else Severity.ERROR
            held = self._effects.held if is_in_doubt else None
            fix = _filler(source) if message == _MASKED else hint
            self._record.at_line(message.format(_USES[use]), fix, severity, own, source, held=held)

    def _mark(self, access: Access, sources: Sources, source: Source) -> None:
        """The same load has the same mark, whatever is wrong with it; those beyond the last mark have none."""
        place = (source.file, source.line), access.buffer.name
        order = self._marks.setdefault(place, len(self._marks))
        access.origin = LOADS[order] if order < len(LOADS) else 0
        sources.setdefault(place[0], {})[place[1]] = source, access.origin

    def _see_mask(self, access: Access) -> None:
        if access.kind != "load":
            self._effects.see(access)
            return
        if access.mask is None or access.mask.all():
            return
        if not access_text(*access.place, access.kind, access.buffer.name).has_filler:
            self._mark(access, self._masked, _source(access, partial(_left_out, access)))
            self._effects.has_undefined = True

    def _see_memory(self, access: Access) -> None:
        key = id(access.buffer)
        if key not in self._record.launch.empty:
            return
        if access.kind == "store":
            if key in self._early:
                self._early[key].write(access)
            return
        bad = unwritten(access.buffer, access.offsets)
        if bad.any() and key not in self._early:
            self._early[key] = EarlyReads(access.buffer, self._record.launch.programs)
        if key in self._early:
            self._early[key].read(access, bad)
        if bad.any():
            self._tell_unwritten(access, bad)

    def _tell_unwritten(self, access: Access, bad: Array) -> None:
        if access.kind == "load":
            access.unwritten = bad
            if not bad.all():
                self._partly.add(access.place)
            self._mark(access, self._never, _source(access, access.unwritten_block))
            return
        message = f"{access.kind} of elements of {access.buffer.name} that were never written"
        lanes = access.lane_numbers[bad]
        self._record.at_access(access, access.programs[bad], lanes, access.offsets[bad], message, _NEVER[1])

    def _settle(self) -> None:
        suspects = self._record.launch.empty
        for key, reads in self._early.items():
            for place, is_early in reads.judge().items():
                hint = _TOO_EARLY if is_early else _NEVER[1]
                self._record.settle_order(place, suspects[key].name, hint, is_early=is_early)


def _watch(record: LaunchFindings) -> Listeners:
    return _Watch(record).listeners()


def _blamed(sources: Sources, taint: Array) -> list[tuple[Source | None, Array]]:
    """Loads that a taint comes from, with their lanes: by their marks, else by what the source says of the line."""
    found = [(source, (taint & bit) != 0) for loads in sources.values() for source, bit in loads.values() if bit]
    marked: list[tuple[Source | None, Array]] = [(source, lanes) for source, lanes in found if lanes.any()]
    if marked:
        return marked
    places = feeding(list(sources), kernel_line())
    return [(source, taint != 0) for place in places for source, _ in sources[place].values()] or [(None, taint != 0)]


def _filler(source: Source | None) -> str:
    if source is None or source.tensor is None:
        return filler_hint(*kernel_line(), "", "")
    return filler_hint(*source.place, source.tensor.name, source.tensor.dtype)


def _is_moved(source: Source) -> bool:
    """A float that the text computes nothing with. Arithmetic of integers is not counted: it may be no copy."""
    tensor = source.tensor
    return tensor is not None and "fp" in tensor.dtype and not is_computed_with(*source.place, tensor.name)


def _left_out(access: Access) -> Array:
    """bool, [programs or 1, *block]: lanes that the mask leaves out."""
    assert access.mask is not None
    mask = lift_array(access.mask, len(access.shape))
    return np.broadcast_to(~mask, (len(mask), *access.shape[1:]))


def _source(access: Access, lanes: Callable[[], Array]) -> Source:
    """The load that is executed, with its lanes that hold nothing."""
    here, buffer = access.place, access.buffer
    return Source(*here, TensorFacts.of(buffer), access_text(*here, access.kind, buffer.name), lanes)


UNINITIALISED = Checker("uninitialised-read", "values that nobody wrote", True, _watch)
