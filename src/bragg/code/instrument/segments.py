"""Which stretches of a kernel are timed: statements with one kind of effect at one line, or those of a scope."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePath
from typing import Protocol

from bragg.code.instrument.blocks import Activity, Block, Kernel, Statement
from bragg.code.source_place import CallChain, SourcePlace, user_place

__all__ = ["MAX_READS", "Activities", "Frame", "Scopes", "Segment", "Selection", "frames_of"]

# Clocks stay in registers until the frame is stored: with the word before them, four vectors of 16 bytes.
MAX_READS = 15


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
class Frame:
    """Clock readings that are stored together, each time that control passes.

    Attributes:
        segments: In order.
        reads: Line of the text, and whether the clock is read behind it (True) or before it.
        flush: Line of the text, and whether the readings are stored behind it (True) or before it.
    """

    segments: tuple[Segment, ...]
    reads: tuple[tuple[int, bool], ...]
    flush: tuple[int, bool]


class Selection(Protocol):
    """Which statements are timed, and which of them together."""

    def key(self, statement: Statement) -> Hashable:
        """Neighbours with the same key are one stretch; None ends it, `THROUGH` neither begins nor ends one."""

    def named(self, statement: Statement) -> tuple[str, bool]:
        """What a stretch that begins with this statement does, and whether it waits."""


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


@dataclass(frozen=True)
class Scopes:
    """Scopes of the source, from the first statement with an effect to the last one.

    Attributes:
        by_line: Name of the scope of each line that is in one.
        file: Of the source; Triton's cache may name it in the directory of another checkout.
    """

    by_line: Mapping[int, str]
    file: str

    def key(self, statement: Statement) -> Hashable:
        """The scope."""
        return self._scope(statement) if statement.activity else THROUGH

    def named(self, statement: Statement) -> tuple[str, bool]:
        """The scope's name."""
        return self._scope(statement) or "", False

    def _scope(self, statement: Statement) -> str | None:
        return next((self.by_line[place.line] for place in statement.place if self._is_in_one(place)), None)

    def _is_in_one(self, place: SourcePlace) -> bool:
        return PurePath(place.file).name == PurePath(self.file).name and place.line in self.by_line


def frames_of(kernel: Kernel, selection: Selection) -> list[Frame]:
    """The frames of a kernel, in the order of its text."""
    return [frame for block in kernel.blocks for frame in _frames(block, selection)]


def _frames(block: Block, selection: Selection) -> Iterator[Frame]:
    """Neighbours that touch share a reading; a frame that is full is stored, and the next one begins."""
    segments: list[Segment] = []
    reads: list[tuple[int, bool]] = []
    last: Statement | None = None
    for first_of, last_of, touches in _stretches(block, selection):
        if len(reads) + (1 if touches and reads else 2) > MAX_READS and last is not None:
            yield Frame(tuple(segments), tuple(reads), (last.last, True))
            segments, reads = [], []
        if not (touches and reads):
            reads.append((first_of.first, False))
        reads.append((last_of.last, True))
        does, is_wait = selection.named(first_of)
        segments.append(Segment(does, is_wait, first_of.place, block.in_loop, len(reads) - 2, len(reads) - 1))
        last = last_of
    if segments:
        end = block.statements[-1]
        yield Frame(tuple(segments), tuple(reads), (end.first, False) if end.branch else (end.last, True))


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
