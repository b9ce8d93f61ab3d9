"""Which stretches of a kernel are timed: statements with one kind of effect at one line, or those of a scope."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, groupby
from pathlib import PurePath
from typing import NamedTuple, Protocol, TypeVar

from bragg.code.instrument.blocks import Activity, Block, Kernel, Statement, Value
from bragg.code.source_place import CallChain, user_place

_T = TypeVar("_T")
# Clocks stay in registers until the frame is stored: with the word before them, four vectors of 16 bytes.
MAX_WORDS = 15
VECTOR_WORDS = 4


@dataclass(frozen=True)
class Segment:
    """A stretch that is timed.

    Attributes:
        does: What happens in it, or the scope that it is of.
        is_wait: Warps do nothing else in it.
        place: The place of its first statement.
        in_loop: Whether it is executed again and again.
        start, end: Numbers of its clock readings in its frame.
        barrier: In shared memory, that its first statement with one uses; None: not known.
    """

    does: str
    is_wait: bool
    place: CallChain
    in_loop: bool
    start: int
    end: int
    barrier: int | None = None


@dataclass(frozen=True)
class ScopeValue:
    """A value that the program gives a scope when control passes.

    Attributes:
        scope: Name of the scope.
        place: Where it begins.
        value: Register and type.
    """

    scope: str
    place: CallChain
    value: Value


class EventCall(NamedTuple):
    """A call in the source that begins or ends an event.

    Attributes:
        name: Of the event.
        begins: Otherwise it ends.
        has_value: It is given one.
        first_line, last_line: Of the function that calls.
    """

    name: str
    begins: bool
    has_value: bool
    first_line: int
    last_line: int


class Event(NamedTuple):
    """A place where an event begins or ends.

    Attributes:
        name: Of the event.
        begins: Otherwise it ends.
        place: Where that is.
    """

    name: str
    begins: bool
    place: CallChain


@dataclass(frozen=True)
class Frame:
    """Clock readings and values that are stored together, each time that control passes.

    Attributes:
        segments: In order.
        reads: Line of the text, and whether the clock is read behind it (True) or before it.
        flush: Line of the text, and whether the readings are stored behind it (True) or before it.
        values: Behind the readings.
        event: That begins or ends there, at its only reading; None: it is of segments.
    """

    segments: tuple[Segment, ...]
    reads: tuple[tuple[int, bool], ...]
    flush: tuple[int, bool]
    values: tuple[ScopeValue, ...] = ()
    event: Event | None = None

    @property
    def registers(self) -> list[str]:
        """Of its readings: those of an event are not those of the segments around it."""
        return ["%bragg_e"] if self.event else [f"%bragg_c{clock}" for clock in range(len(self.reads))]

    @property
    def n_words(self) -> int:
        """Readings and values."""
        return len(self.reads) + len(self.values)

    @property
    def n_stored_words(self) -> int:
        """With the word before them, up to the end of the last vector."""
        return -(-(self.n_words + 1) // VECTOR_WORDS) * VECTOR_WORDS


class Selection(Protocol):
    """Which statements are timed, and which of them together."""

    def key(self, statement: Statement) -> Hashable:
        """Neighbours with the same key are one stretch; None ends it, `THROUGH` neither begins nor ends one."""

    def named(self, statement: Statement) -> tuple[str, bool]:
        """What a stretch that begins with this statement does, and whether it waits."""

    @property
    def takes_integers(self) -> bool:
        """Whether a stretch lasts until the next one if only arithmetic of integers lies between them."""

    def scope_value(self, statement: Statement) -> ScopeValue | None:
        """The value that a statement has ready for a scope that is timed."""

    def events(self, block: Block) -> Iterator[Frame]:
        """A frame for each place where an event begins or ends."""


THROUGH = "through"


@dataclass(frozen=True)
class Activities:
    """Statements with one kind of effect, at one line. Everything else with an effect ends a stretch.

    Attributes:
        wanted: What is timed; accesses to shared memory that are not are part of the products they feed.
    """

    wanted: Collection[Activity]
    takes_integers = False

    def key(self, statement: Statement) -> Hashable:
        """The activity and its line."""
        activity = statement.activity
        if activity is None or (activity is Activity.SHARED and activity not in self.wanted):
            return THROUGH
        place = user_place(statement.place)
        return None if activity not in self.wanted else (activity, place and (place.file, place.line))

    def named(self, statement: Statement) -> tuple[str, bool]:
        """In words."""
        assert statement.activity is not None
        return statement.activity.value, statement.activity.is_wait

    def scope_value(self, statement: Statement) -> ScopeValue | None:
        """Scopes are not timed."""
        return None

    def events(self, block: Block) -> Iterator[Frame]:
        """Nor are events."""
        return iter(())


@dataclass(frozen=True)
class Scopes:
    """Scopes of the source, from the first statement with an effect to the last one.

    Two readings with addresses computed between them would keep the assembler from computing these while something
    else is waited for; so they are one.

    Attributes:
        by_line: Name of the scope of each line that is in one.
        by_first_line: Name of the scope that a line begins.
        file: Of the source; Triton's cache may name it in the directory of another checkout.
        valued_events: What begins or ends at a line that gives it a value.
        event_lines: What begins before a line, or ends behind it.
    """

    by_line: Mapping[int, str]
    by_first_line: Mapping[int, str]
    file: str
    valued_events: Mapping[int, EventCall] = field(default_factory=dict)
    event_lines: Mapping[int, Sequence[EventCall]] = field(default_factory=dict)
    takes_integers = True

    def key(self, statement: Statement) -> Hashable:
        """The scope."""
        return self._scope(statement) if statement.activity else THROUGH

    def named(self, statement: Statement) -> tuple[str, bool]:
        """The scope's name."""
        return self._scope(statement) or "", False

    def scope_value(self, statement: Statement) -> ScopeValue | None:
        """What the program gave the scope."""
        scope = self._named(statement, self.by_first_line)
        return ScopeValue(scope, statement.place, statement.value) if statement.value and scope else None

    def events(self, block: Block) -> Iterator[Frame]:
        """With a value where that is ready, without one before and behind neighbours of one line."""
        for statement in block.statements:
            call = self._named(statement, self.valued_events) if statement.value else None
            if call is not None and statement.value is not None:
                value = ScopeValue(call.name, statement.place, statement.value)
                event = Event(call.name, call.begins, statement.place)
                yield Frame((), ((statement.first, False),), (statement.last, True), (value,), event)
        for calls, run in groupby(block.statements, self._calls_at):
            statements = list(run)
            for call in calls:
                at = (statements[0].first, False) if call.begins else (statements[-1].last, True)
                yield Frame((), (at,), at, (), Event(call.name, call.begins, statements[0].place))

    def _calls_at(self, statement: Statement) -> Sequence[EventCall]:
        return (self._named(statement, self.event_lines) if statement.activity else None) or ()

    def _scope(self, statement: Statement) -> str | None:
        return self._named(statement, self.by_line)

    def _named(self, statement: Statement, names: Mapping[int, _T]) -> _T | None:
        return next((names[line] for line in lines_in(statement, self.file) if line in names), None)


def lines_in(statement: Statement, file: str) -> list[int]:
    """Lines of a file that a statement comes from, the innermost first."""
    return [place.line for place in statement.place if PurePath(place.file).name == PurePath(file).name]


def frames_of(kernel: Kernel, selection: Selection) -> list[Frame]:
    """The frames of a kernel: those of segments of a block, and then its events."""
    return [frame for block in kernel.blocks for frame in chain(_frames(block, selection), selection.events(block))]


def _frames(block: Block, selection: Selection) -> Iterator[Frame]:
    """Neighbours that touch share a reading; a frame that is full is stored, and the next one begins.

    Values are stored when the block ends: the register of each keeps it.
    """
    segments: list[Segment] = []
    reads: list[tuple[int, bool]] = []
    last: Statement | None = None
    for first_of, last_of, touches in _stretches(block, selection):
        if len(reads) + (1 if touches and reads else 2) > MAX_WORDS and last is not None:
            yield Frame(tuple(segments), tuple(reads), (last.last, True))
            segments, reads = [], []
        if touches and reads:
            reads[-1] = (first_of.first, False)
        else:
            reads.append((first_of.first, False))
        reads.append((last_of.last, True))
        does, is_wait = selection.named(first_of)
        run = (each for each in block.statements if first_of.first <= each.first <= last_of.first)
        barrier = next((each.barrier for each in run if each.barrier is not None), None)
        segments.append(Segment(does, is_wait, first_of.place, block.in_loop, len(reads) - 2, len(reads) - 1, barrier))
        last = last_of
    values = [value for each in block.statements if (value := selection.scope_value(each)) is not None]
    while segments or values:
        end = block.statements[-1]
        fitting = MAX_WORDS - len(reads)
        flush = (end.first, False) if end.branch else (end.last, True)
        yield Frame(tuple(segments), tuple(reads), flush, tuple(values[:fitting]))
        segments, reads, values = [], [], values[fitting:]


def _stretches(block: Block, selection: Selection) -> Iterator[tuple[Statement, Statement, bool]]:
    """First and last statement of each segment, and whether nothing that counts lies between it and the one before."""
    runs: list[tuple[Hashable, int, int]] = []  # key, and index of the first and last statement
    is_broken = True
    for index, statement in enumerate(block.statements):
        key = selection.key(statement)
        if key == THROUGH:
            continue
        if key is not None and not is_broken and runs[-1][0] == key:
            runs[-1] = (key, runs[-1][1], index)
        elif key is not None:
            runs.append((key, index, index))
        is_broken = key is None
    before = len(block.statements)
    for _, first, last in runs:
        between = block.statements[before + 1 : first]
        touches = first > before and all(selection.takes_integers and each.is_integer for each in between)
        yield block.statements[first], block.statements[last], touches
        before = last
