"""Values that nobody wrote: lanes that a mask left out without a value, and memory of `empty`."""

from __future__ import annotations

from bragg.debug.checkers.checker import Checker, LaunchFindings, Source
from bragg.debug.expressions import access_text, feeding
from bragg.debug.findings import TensorFacts
from bragg.debug.flow.place import kernel_line
from bragg.debug.memory.access import Access
from bragg.debug.memory.emptiness import unwritten
from bragg.debug.memory.storage import Buffer
from bragg.debug.state import Listeners, machine
from bragg.debug.values import CHOSEN, LOADS, UNDEFINED, UNWRITTEN
from bragg.model import Severity
from bragg.model.table import Array

__all__ = ["UNINITIALISED"]

_USES = {
    "store": "is stored",
    "load": "decides an address or a mask",
    "atomic": "decides an address or a mask",
    "condition": "decides an `if` or a loop",
    "histogram": "is counted",
}

_MASKED = (
    "a value of a masked-off lane that was loaded without `other` {}",
    "Give the load a value for these lanes: other=0",
)
_NEVER = (
    "a value of memory that nobody has written {}",
    "Write the tensor first, or make it with zeros instead of empty",
)

# By file and line, and by tensor: a load, and its mark in taints.
Sources = dict[tuple[str, int], dict[str, tuple[Source, int]]]


def _watch(record: LaunchFindings) -> Listeners:
    masked: Sources = {}
    never: Sources = {}
    marks: dict[tuple[tuple[str, int], str], int] = {}
    partly: set[tuple[str, int]] = set()
    suspects = record.launch.empty

    def tell(use: str, taint: Array, bit: int, _buffer: Buffer | None) -> None:
        if bit not in (UNDEFINED, CHOSEN, UNWRITTEN) or use not in _USES:
            return
        sources, (message, hint) = (never, _NEVER) if bit == UNWRITTEN else (masked, _MASKED)
        lanes = (taint & bit) != 0
        is_copy = use == "store" and bit == UNWRITTEN and not machine().operations
        for source, own in _blamed(sources, taint * lanes):
            is_harmless = is_copy and source is not None and source.place not in partly and _is_float(source)
            severity = Severity.NOTE if is_harmless else Severity.ERROR
            record.at_line(message.format(_USES[use]), hint, severity, own, source)

    def mark(access: Access, sources: Sources, source: Source) -> None:
        """The same load has the same mark, whatever is wrong with it; those beyond the last mark have none."""
        place = (source.file, source.line), access.buffer.name
        order = marks.setdefault(place, len(marks))
        access.origin = LOADS[order] if order < len(LOADS) else 0
        sources.setdefault(place[0], {})[place[1]] = source, access.origin

    def remember(access: Access) -> None:
        if access.kind != "load" or access.mask is None or access.mask.all():
            return
        if not access_text(*access.place, access.kind, access.buffer.name).has_filler:
            mark(access, masked, _source(access))

    def look(access: Access) -> None:
        if access.kind == "store" or id(access.buffer) not in suspects:
            return
        bad = unwritten(access.buffer, access.offsets)
        if not bad.any():
            return
        if access.kind == "load":
            access.unwritten = bad
            if not bad.all():
                partly.add(access.place)
            mark(access, never, _source(access))
            return
        name = access.buffer.name
        message = f"{access.kind} of elements of {name} that were never written"
        lanes = access.lane_numbers[bad]
        record.at_access(access, access.programs[bad], lanes, access.offsets[bad], message, _NEVER[1])

    return Listeners(tainted=[tell], access=[remember, look] if suspects else [remember])


def _blamed(sources: Sources, taint: Array) -> list[tuple[Source | None, Array]]:
    """Loads that a taint comes from, with their lanes: by their marks, else by what the source says of the line."""
    found = [(source, (taint & bit) != 0) for loads in sources.values() for source, bit in loads.values() if bit]
    marked: list[tuple[Source | None, Array]] = [(source, lanes) for source, lanes in found if lanes.any()]
    if marked:
        return marked
    places = feeding(list(sources), kernel_line())
    return [(source, taint != 0) for place in places for source, _ in sources[place].values()] or [(None, taint != 0)]


def _is_float(source: Source) -> bool:
    """Arithmetic of integers is not counted: what is stored may be no copy."""
    return source.tensor is not None and "fp" in source.tensor.dtype


def _source(access: Access) -> Source:
    """The load that is executed."""
    here, buffer = access.place, access.buffer
    return Source(*here, TensorFacts.of(buffer), access_text(*here, access.kind, buffer.name))


UNINITIALISED = Checker("uninitialised-read", "values that nobody wrote", True, _watch)
