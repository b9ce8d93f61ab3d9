"""Atomic operations of many threads on one address."""

from __future__ import annotations

import math
from collections.abc import Sequence

from bragg.analyze.causes.least_time import moving_ns
from bragg.analyze.causes.thresholds import COLLIDING, MANY_LANES, MUCH_ATOMIC
from bragg.analyze.rules.kernel_rule import CompiledKernel, Confidence, Defect, HotKernel, Quantity, kernel_rule
from bragg.model.finding import percent_text
from bragg.model.kernels.compiled import Atomic

# The second level of cache does one after the other: twins with tiles in a loop took 82 and 88 % less on an H100.
_SAVED, _SAVED_SCALAR = 0.8, 0.3
_CHANGE = "reduce the tile first (tl.sum), over all turns of the loop, and let each program do one atomic operation"
# An H100 added 67 million elements to 1,024 addresses in 0.7 ms.
_ATOMICS_PER_S, _SAVED_OF_PROGRAMS = 96e9, 0.75
_CHANGE_OF_PROGRAMS = "let each program add up more rows before its atomic operation: fewer programs, or a loop"
_CHANGE_OF_COLLISIONS = (
    "count within the program first (tl.histogram, tl.sum with masks), and add each sum atomically once"
)
# With tl.histogram or sums before the atomic operations, six twins counted 270 to 750 elements a ns on H100s and H200s.
_MOSTLY, _COUNTED_PER_S = 0.5, 300e9
_SERIAL_NS = 0.5  # of an atomic operation on an address that all have: 0.67 and 0.87 on an H200
_TURN_NS = 2_000  # of a turn that loads and adds, where nothing else runs meanwhile; at most
_BYTES_PER_S = 1e12  # that any GPU with tensor cores moves, and half of it at random
_CHANGE_OF_LOCK = "store the part of each program, and add parts up in another kernel; or a lock for each group"
_CHANGE_OF_TILES = "add up tiles in the loop, and do one atomic operation of the sum after it"


def _judge(kernel: HotKernel, compiled: CompiledKernel) -> Defect | None:
    contended = [each for each in compiled.atomics or () if _is_contended(each)]
    if not contended:
        return _of_lock(kernel, compiled) or _of_programs(kernel, compiled) or _of_collisions(kernel, compiled)
    worst = max(contended, key=lambda each: (_is_of_lanes(each), each.elements, each.in_loop))
    of_lanes = _is_of_lanes(worst)
    how = f"all {worst.elements:,} elements of a tile" if of_lanes else "each turn of a loop"
    where = "one address" if of_lanes or worst.elements == 1 else "the same addresses"
    return Defect(
        f"does atomic operations of {how} on {where}",
        _CHANGE if of_lanes or worst.elements == 1 else _CHANGE_OF_TILES,
        _saved_by_sums(kernel, compiled, worst) or (_SAVED if worst.elements > 1 else _SAVED_SCALAR),
        Confidence.LIKELY,
        [each.place for each in (worst, *contended)],
        (Quantity("elements", worst.elements), Quantity("atomic operations", len(contended))),
    )


def _of_lock(kernel: HotKernel, compiled: CompiledKernel) -> Defect | None:
    """A lock that all programs wait for, so that they work one after the other."""
    places = compiled.locks or ()
    if not places:
        return None
    share, is_measured = kernel.share_of_lines(places)
    return Defect(
        "waits in each program for one lock: what it guards is done by one program after the other",
        _CHANGE_OF_LOCK,
        share if is_measured else None,
        Confidence.LIKELY,
        places,
        (Quantity("such locks", len(places)),),
        is_measured,
    )


def _of_programs(kernel: HotKernel, compiled: CompiledKernel) -> Defect | None:
    """Tiles that so many programs add to the same addresses that the second level of cache bounds the kernel."""
    grid = max((launch.grid for launch in kernel.launches), key=math.prod, default=(1, 1, 1))
    shared = [
        each
        for each in compiled.atomics or ()
        if not each.in_loop and each.is_per_program is not None and each.elements >= MANY_LANES.value
    ]
    repeats = max((_repeats(each, grid) for each in shared), default=1)
    shared = [each for each in shared if _repeats(each, grid) > 1]
    blocks = math.prod(grid)
    added = blocks * sum(each.elements for each in shared)
    share = added / _ATOMICS_PER_S * 1e9 / kernel.mean_ns if kernel.mean_ns else 0.0
    if share < MUCH_ATOMIC.value:
        return None
    return Defect(
        f"adds {shared[0].elements:,} elements to the same addresses in each of {repeats:,} blocks: "
        f"these additions take at least {percent_text(min(share, 1.0))} of its time",
        _CHANGE_OF_PROGRAMS,
        _SAVED_OF_PROGRAMS * min(share, 1.0),
        Confidence.LIKELY,
        [each.place for each in shared],
        (Quantity("atomic operations of a launch", added), Quantity("blocks", blocks)),
    )


def _repeats(atomic: Atomic, grid: tuple[int, int, int]) -> int:
    """Blocks that add to the same addresses."""
    return math.prod(size for axis, size in zip("xyz", grid, strict=True) if axis not in atomic.axes)


def _of_collisions(kernel: HotKernel, compiled: CompiledKernel) -> Defect | None:
    """Elements that data spread over addresses, where the kernel takes so long that only few addresses explain it."""
    spread = [
        each
        for each in compiled.atomics or ()
        if each.times and each.is_one_address is None and each.elements >= MANY_LANES.value
    ]
    accesses, turns = compiled.accesses or (), max((each.times or 1 for each in spread), default=1)
    does_more = compiled.dots or compiled.slow or any(each.times is None or each.times > turns for each in accesses)
    blocks = max((launch.blocks for launch in kernel.launches), default=0)
    added = blocks * sum(each.elements * (each.times or 0) for each in spread)
    moved = blocks * sum(each.size_bytes * (each.times or 0) for each in accesses)
    expected_ns = (added / _ATOMICS_PER_S + moved / _BYTES_PER_S) * 1e9 + (turns - 1) * _TURN_NS
    if not added or does_more or not kernel.mean_ns:
        return None
    if kernel.mean_ns < COLLIDING.value * expected_ns:
        return _of_counts(kernel, compiled, spread, added)
    return Defect(
        f"adds {added:,} elements to addresses that depend on data, {kernel.mean_ns / added:.2g} ns for each: "
        f"{kernel.mean_ns / expected_ns:.0f} times as long as if they were many",
        _CHANGE_OF_COLLISIONS,
        _saved_by_counting(kernel, compiled, added, 1 - expected_ns / kernel.mean_ns),
        Confidence.LIKELY,
        [each.place for each in spread],
        (Quantity("atomic operations of a launch", added), Quantity("blocks", blocks)),
    )


def _of_counts(kernel: HotKernel, compiled: CompiledKernel, spread: Sequence[Atomic], added: int) -> Defect | None:
    """Elements that are counted one by one, which takes most of the time however many addresses there are."""
    share = added / _ATOMICS_PER_S * 1e9 / kernel.mean_ns
    if share < _MOSTLY or not all(each.counts for each in spread):
        return None
    return Defect(
        f"counts {added:,} elements by an atomic operation each: {percent_text(min(share, 1.0))} of its time at least",
        _CHANGE_OF_COLLISIONS,
        _saved_by_counting(kernel, compiled, added, min(share, 1.0)),
        Confidence.LIKELY,
        [each.place for each in spread],
        (Quantity("atomic operations of a launch", added),),
    )


def _saved_by_counting(kernel: HotKernel, compiled: CompiledKernel, added: int, otherwise: float) -> float:
    """By the time that counting within programs takes, beside that of the bytes."""
    least_ns = moving_ns(kernel, compiled)
    return otherwise if least_ns is None else max(1 - (least_ns + added / _COUNTED_PER_S * 1e9) / kernel.mean_ns, 0.0)


def _saved_by_sums(kernel: HotKernel, compiled: CompiledKernel, atomic: Atomic) -> float | None:
    """By the bytes and one atomic operation of each block; None: it is not known, or other work takes its time."""
    least_ns, blocks = moving_ns(kernel, compiled), max((launch.blocks for launch in kernel.launches), default=0)
    serial_ns = blocks * atomic.elements * (atomic.times or 0) * _SERIAL_NS
    if least_ns is None or compiled.dots or not _is_of_lanes(atomic) or serial_ns < _MOSTLY * kernel.mean_ns:
        return None
    return max(1 - (least_ns + serial_ns / atomic.elements) / kernel.mean_ns, 0.0)


def _is_contended(atomic: Atomic) -> bool:
    return _is_of_lanes(atomic) or atomic.is_repeated


def _is_of_lanes(atomic: Atomic) -> bool:
    return bool(atomic.is_one_address) and atomic.elements >= MANY_LANES.value


RULE = kernel_rule(
    "atomics-on-one-address",
    _judge,
    "atomic operations of many threads, of each turn or of very many programs on the same addresses",
    _CHANGE,
    MANY_LANES,
    MUCH_ATOMIC,
    COLLIDING,
)
