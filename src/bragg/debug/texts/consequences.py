"""Findings of one defect together: what may follow from another finding is told with it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from bragg.debug.expressions import feeds
from bragg.debug.findings import KernelFinding, is_by_lanes_of
from bragg.model import Severity


def grouped(found: Sequence[KernelFinding]) -> list[tuple[KernelFinding, list[KernelFinding]]]:
    """Each finding that stands for itself, with those that may follow from it; all in their order."""
    together: dict[int, tuple[KernelFinding, list[KernelFinding]]] = {}
    causes = [_first_cause(one, found) for one in found]
    for one, cause in zip(found, causes, strict=True):
        if cause is one:
            together[id(one)] = one, []
    for one, cause in zip(found, causes, strict=True):
        if cause is not one:
            together[id(cause)][1].append(one)
    return list(together.values())


def grouped_lines(found: Sequence[KernelFinding]) -> list[str]:
    """Findings as text, with an empty line after each group."""
    lines: list[str] = []
    for cause, others in grouped(found):
        lines += cause.lines()
        if others:
            places = ", ".join(dict.fromkeys(map(_place, others)))
            lines.append(f"  {len(others)} more may follow from it, so check again when it is mended: {places}")
        lines.append("")
    return lines


def _place(one: KernelFinding) -> str:
    return f"{one.rule} at line {one.line}{f' ({one.tensor.name})' if one.tensor else ''}"


def _first_cause(one: KernelFinding, found: Sequence[KernelFinding]) -> KernelFinding:
    """The finding that one follows from and that follows from no other; itself: it follows from none."""
    seen = [one]
    while True:
        here = seen[-1]
        others = (other for other in found if other.kernel == here.kernel and not any(other is each for each in seen))
        cause = next((other for other in others if _follows(here, other, found)), None)
        if cause is None:
            return here
        seen.append(cause)


def _follows(one: KernelFinding, cause: KernelFinding, found: Sequence[KernelFinding]) -> bool:
    rule = _RULES.get((one.rule, cause.rule))
    if rule is None or one.severity > cause.severity:
        return False
    is_earlier = next(each for each in found if each is one or each is cause) is cause
    return rule(one, cause) and (is_earlier or one.rule != cause.rule)


def _is_wrapped(outside: KernelFinding, overflow: KernelFinding) -> bool:
    """The address of an access comes from a number that has wrapped, in the same programs."""
    used_at = (overflow.other or {}).get("line", overflow.line)
    comes_from = outside.line in (overflow.line, used_at) or feeds(
        (overflow.file, overflow.line), (outside.file, outside.line)
    )
    return comes_from and outside.programs <= overflow.programs


def _is_same_access(one: KernelFinding, other: KernelFinding) -> bool:
    return (one.file, one.line, one.tensor) == (other.file, other.line, other.tensor)


def _comes_too_early(read: KernelFinding, race: KernelFinding) -> bool:
    """A read finds nothing since the program that writes there comes later: the race of the two."""
    other = race.other or {}
    sides = (race.file, race.line), (other.get("file"), other.get("line"))
    is_of_race = read.tensor == race.tensor and (read.file, read.line) in sides and read.programs <= race.programs
    return bool(read.is_early) and is_of_race


def _is_by_lanes_outside(race: KernelFinding, outside: KernelFinding) -> bool:
    return _is_same_access(race, outside) and is_by_lanes_of(race, outside)


def _is_same_spill(spill: KernelFinding, outside: KernelFinding) -> bool:
    """Lanes past the end of a row, which leave the tensor where no row follows."""
    is_spill = spill.severity is Severity.WARNING and outside.severity is Severity.ERROR
    return is_spill and _is_same_access(spill, outside) and outside.positions <= spill.positions


def _is_same_order(one: KernelFinding, other: KernelFinding) -> bool:
    """Two races on one tensor, or of programs that atomics put in no order: a lock that is missing or leaks."""
    is_unordered = all((each.other or {}).get("why") for each in (one, other))
    return is_unordered or (one.tensor is not None and one.tensor == other.tensor)


_RULES: dict[tuple[str, str], Callable[[KernelFinding, KernelFinding], bool]] = {
    ("out-of-bounds", "integer-overflow"): _is_wrapped,
    ("out-of-bounds", "out-of-bounds"): _is_same_spill,
    ("data-race", "out-of-bounds"): _is_by_lanes_outside,
    ("data-race", "data-race"): _is_same_order,
    ("uninitialised-read", "data-race"): _comes_too_early,
    ("nan-result", "nan-result"): lambda one, cause: (one.file, one.line) == (cause.file, cause.line),
    ("launch-dependence", "masked-lanes"): lambda _one, _cause: True,
}
