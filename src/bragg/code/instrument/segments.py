"""Which stretches of a kernel are timed: statements with one kind of effect at one line, or those of a scope."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePath
from typing import Protocol

from bragg.code.instrument.blocks import Activity, Block, Kernel, Statement, Value
from bragg.code.source_place import CallChain, user_place

__all__ = [
    "MAX_WORDS",
    "VECTOR_WORDS",
    "Activities",
    "Frame",
    "ScopeValue",
    "Scopes",
    "Segment",
    "Selection",
    "frames_of",
]

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
    """

    does: str
    is_wait: bool
    place: CallChain
    in_loop: bool
    start: int
    end: int


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


@dataclass(frozen=True)
class Frame:
    """Clock readings and values that are stored together, each time that control passes.

    Attributes:
        segments: In order.
        reads: Line of the text, and whether the clock is read behind it (True) or before it.
        flush: Line of the text, and whether the readings are stored behind it (True) or before it.
        values: Behind the readings.
    """

    segments: tuple[Segment, ...]
    reads: tuple[tuple[int, bool], ...]
    flush: tuple[int, bool]
    values: tuple[ScopeValue, ...] = ()

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

    def scope_value(self, statement: Statement) -> ScopeValue | None:
        """The value that a statement has ready for a scope that is timed."""


THROUGH = "through"


@dataclass(frozen=True)
class Activities:
    """Statements with one kind of effect, at one line. Everything else with an effect ends a stretch.

    Attributes:
        wanted: What is timed; accesses to shared memory that are not are part of the products they feed.
    """

    wanted: Collection[Activity]

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


@dataclass(frozen=True)
class Scopes:
    """Scopes of the source, from the first statement with an effect to the last one.

    Attributes:
        by_line: Name of the scope of each line that is in one.
        by_first_line: Name of the scope that a line begins.
        file: Of the source; Triton's cache may name it in the directory of another checkout.
    """

    by_line: Mapping[int, str]
    by_first_line: Mapping[int, str]
    file: str

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

    def _scope(self, statement: Statement) -> str | None:
        return self._named(statement, self.by_line)

    def _named(self, statement: Statement, names: Mapping[int, str]) -> str | None:
        own = [place for place in statement.place if PurePath(place.file).name == PurePath(self.file).name]
        return next((names[place.line] for place in own if place.line in names), None)


def frames_of(kernel: Kernel, selection: Selection) -> list[Frame]:
    """The frames of a kernel, in the order of its text."""
    return [frame for block in kernel.blocks for frame in _frames(block, selection)]


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
        if not (touches and reads):
            reads.append((first_of.first, False))
        reads.append((last_of.last, True))
        does, is_wait = selection.named(first_of)
        segments.append(Segment(does, is_wait, first_of.place, block.in_loop, len(reads) - 2, len(reads) - 1))
        last = last_of
    values = [value for each in block.statements if (value := selection.scope_value(each)) is not None]
    while segments or values:
        end = block.statements[-1]
        fitting = MAX_WORDS - len(reads)
        flush = (end.first, False) if end.branch else (end.last, True)
        yield Frame(tuple(segments), tuple(reads), flush, tuple(values[:fitting]))
        segments, reads, values = [], [], values[fitting:]


def _stretches(block: Block, selection: Selection) -> Iterator[tuple[Statement, Statement, bool]]:
    """First and last statement of each segment, and whether no statement lies between it and the one before."""
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
    before = -2
    for _, first, last in runs:
        yield block.statements[first], block.statements[last], first == before + 1
        before = last
