"""Which stretches of a kernel are timed: statements with one kind of effect, at one line, one after another."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from bragg.code.instrument.blocks import Activity, Block, Kernel, Statement
from bragg.code.source_place import CallChain, user_place

__all__ = ["MAX_READS", "Frame", "Segment", "frames_of"]

# Clocks stay in registers until the frame is stored: with the word before them, four vectors of 16 bytes.
MAX_READS = 15


@dataclass(frozen=True)
class Segment:
    """A stretch that is timed.

    Attributes:
        activity: What happens in it.
        place: The place of its first statement.
        in_loop: Whether it is executed again and again.
        start, end: Numbers of its clock readings in its frame.
    """

    activity: Activity
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
        flush: Where the readings are stored, likewise.
    """

    segments: tuple[Segment, ...]
    reads: tuple[tuple[int, bool], ...]
    flush: tuple[int, bool]


def frames_of(kernel: Kernel, wanted: Collection[Activity]) -> list[Frame]:
    """The frames of a kernel, in the order of its text.

    Args:
        kernel: The kernel.
        wanted: What is timed. Everything else with an effect ends a segment, but for accesses to shared memory, which
            are part of the products they feed.
    """
    return [frame for block in kernel.blocks for frame in _frames(block, wanted)]


def _frames(block: Block, wanted: Collection[Activity]) -> Iterator[Frame]:
    """Neighbours that touch share a reading; a frame that is full is stored, and the next one begins."""
    segments: list[Segment] = []
    reads: list[tuple[int, bool]] = []
    last: Statement | None = None
    for first_of, last_of, touches in _stretches(block, wanted):
        if len(reads) + (1 if touches and reads else 2) > MAX_READS and last is not None:
            yield Frame(tuple(segments), tuple(reads), (last.last, True))
            segments, reads = [], []
        if not (touches and reads):
            reads.append((first_of.first, False))
        reads.append((last_of.last, True))
        assert first_of.activity is not None
        segments.append(Segment(first_of.activity, first_of.place, block.in_loop, len(reads) - 2, len(reads) - 1))
        last = last_of
    if segments:
        end = block.statements[-1]
        yield Frame(tuple(segments), tuple(reads), (end.first, False) if end.branch else (end.last, True))


def _stretches(block: Block, wanted: Collection[Activity]) -> Iterator[tuple[Statement, Statement, bool]]:
    """First and last statement of each segment, and whether no statement lies between it and the one before."""
    first: Statement | None = None
    last: Statement | None = None
    ended: int | None = None  # index of the last statement of the segment before
    last_index = -1
    is_broken = False
    for index, statement in enumerate(block.statements):
        activity = statement.activity
        if activity is None or (activity is Activity.SHARED and activity not in wanted):
            continue
        if activity not in wanted:
            is_broken = True
            continue
        if first is not None and last is not None and (is_broken or _key(statement) != _key(first)):
            yield first, last, ended is not None and _touch(block, ended, first)
            ended, first = last_index, None
        if first is None:
            first = statement
        last, last_index, is_broken = statement, index, False
    if first is not None and last is not None:
        yield first, last, ended is not None and _touch(block, ended, first)


def _touch(block: Block, ended: int, first: Statement) -> bool:
    return ended + 1 < len(block.statements) and block.statements[ended + 1] is first


def _key(statement: Statement) -> tuple[Activity | None, str, int]:
    place = user_place(statement.place)
    return (statement.activity, place.file, place.line) if place else (statement.activity, "", 0)
