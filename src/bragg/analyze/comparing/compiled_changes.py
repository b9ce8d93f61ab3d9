"""Which facts of compiled kernels differ between two recordings."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from bragg.analyze.compiled_kernels import CompiledKernels
from bragg.code.source_map import Stage, source_name
from bragg.model import Profile
from bragg.model.kernels.compiled import CompiledKernel, Counted
from bragg.model.kernels.names import base_name

Value = int | float | str


@dataclass(frozen=True)
class CompiledChange:
    """One fact of one kernel.

    Attributes:
        kernel: Its name after the change.
        fact: What it is: `registers`.
        unit: `B`, `share`, `1`, or empty for a text.
        before: Its value.
        after: The same of the later recording.
    """

    kernel: str
    fact: str
    unit: str
    before: Value
    after: Value


def compiled_changes(before: Profile, after: Profile) -> list[CompiledChange]:
    """What differs, kernels in the order of the later recording; kernels whose texts are equal are not read."""
    sides = CompiledKernels(before), CompiledKernels(after)
    return [change for one, other in _pairs(*sides) for change in _changes(one, other, (before, after), sides)]


def _pairs(before: CompiledKernels, after: CompiledKernels) -> Iterator[tuple[str, str]]:
    """Names that belong together: equal ones, and single specializations of one kernel."""
    old, new = list(before.names), list(after.names)
    left = _by_base(name for name in old if name not in new)
    for base, names in _by_base(name for name in new if name not in old).items():
        if len(names) == 1 and len(left.get(base, ())) == 1:
            yield left[base][0], names[0]
    yield from ((name, name) for name in new if name in old)


def _by_base(names: Iterable[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name in names:
        found.setdefault(base_name(name), []).append(name)
    return found


def _changes(
    one: str, other: str, profiles: tuple[Profile, Profile], sides: tuple[CompiledKernels, CompiledKernels]
) -> Iterator[CompiledChange]:
    keys = sides[0].key_of(one), sides[1].key_of(other)
    if _texts(profiles[0], keys[0]) == _texts(profiles[1], keys[1]):
        return
    before, after = sides[0].of(one), sides[1].of(other)
    if before is not None and after is not None:
        yield from changes_of(before, after, other)


def changes_of(before: CompiledKernel, after: CompiledKernel, name: str) -> Iterator[CompiledChange]:
    """What differs between two kernels, the second of which is called so."""
    for fact, unit, value in _FACTS:
        old, new = value(before), value(after)
        if old is not None and new is not None and old != new:
            yield CompiledChange(name, fact, unit, old, new)


def _texts(profile: Profile, key: str) -> list[str | None]:
    return [profile.sources.get(source_name(key, stage)) for stage in Stage]


def _count(items: tuple[object, ...] | None) -> int | None:
    return None if items is None else len(items)


def _instructions(counted: tuple[Counted, ...] | None) -> int | None:
    return None if counted is None else sum(each.count for each in counted)


def _narrowest(kernel: CompiledKernel, *, stores: bool) -> int | None:
    """Width of the narrowest access that has a width."""
    widths = [each.compiled_bytes for each in kernel.accesses or () if each.is_store == stores and each.compiled_bytes]
    return min(widths, default=None)


def _pipelined(kernel: CompiledKernel) -> int | None:
    """Loops with products that load ahead."""
    of_dots = [loop.is_pipelined for loop in kernel.loops or () if loop.n_dots]
    return None if None in of_dots or kernel.loops is None else sum(map(bool, of_dots))


_FACTS: tuple[tuple[str, str, Callable[[CompiledKernel], Value | None]], ...] = (
    ("warps", "1", lambda kernel: kernel.num_warps),
    ("stages asked for", "1", lambda kernel: kernel.num_stages),
    ("registers", "1", lambda kernel: kernel.registers),
    ("stack", "B", lambda kernel: kernel.stack_bytes),
    ("spilling instructions", "1", lambda kernel: _instructions(kernel.spills)),
    ("shared memory", "B", lambda kernel: kernel.dynamic_shared_bytes),
    ("occupancy", "share", lambda kernel: kernel.occupancy),
    ("width of loads", "B", lambda kernel: _narrowest(kernel, stores=False)),
    ("width of stores", "B", lambda kernel: _narrowest(kernel, stores=True)),
    ("tensor cores", "", lambda kernel: kernel.tensor_cores.value if kernel.tensor_cores else None),
    ("pipelined loops", "1", _pipelined),
    ("changes of layout in loops", "1", lambda kernel: _count(kernel.conversions)),
    ("64-bit operations", "1", lambda kernel: _instructions(kernel.doubles)),
    ("slow operations in loops", "1", lambda kernel: _count(kernel.slow)),
)
