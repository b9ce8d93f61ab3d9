"""Blocks with more threads than their tiles have elements."""

from __future__ import annotations

from bragg.analyze.causes.least_time import moving_ns
from bragg.analyze.rules.kernel_rule import CompiledKernel, Confidence, Defect, HotKernel, Quantity, kernel_rule
from bragg.model.kernels.compiled import Access

# Threads without elements of their own take issue slots and places on a multiprocessor, and their blocks are small:
# where three of four repeat the work of others, twins with full tiles took 87 % and 96 % less on an H100.
_SAVED = 1.0
_CHANGE = "a larger tile for each program, or fewer warps"
# On an H100, softmax of 1,000 numbers took 24 % less in tiles of 1,024 than of 4,096, that of 33 numbers 33 % less in
# tiles of 64 than of 1,024; a tile of twice the size costs nothing.
_SAVED_OF_LANES, _MUCH_LARGER = 0.33, 4
_CHANGE_OF_LANES = "the next power of two as the size of the tile: triton.next_power_of_2(n)"
# Several rows that are this short fill a tile: two million of 24 numbers took an H200 90 % less, 128 in a program.
_SHORT_ROW, _MOST_OF_ROWS = 128, 0.9
_CHANGE_OF_ROWS = (
    f"{_CHANGE_OF_LANES}, and several rows in each program: tl.arange(0, ROWS)[:, None] beside the columns"
)
# Of each thread in a turn, that fewer bytes than memory could move are under way; our choice, as the share of the time.
_SHORT_TURN, _LEAST_OF_TURNS = 8, 0.5
_CHANGE_OF_TURNS = "a larger tile for each turn: 16 B and more for each thread, and fewer turns"
# More warps than Triton launches unless told, of which each thread loads so little: as narrow accesses cost, if the
# bytes of the kernel do not tell.
_USUAL_WARPS = 4
_SAVED_NARROW = {1: 0.7, 2: 0.5, 4: 0.15}


def _judge(kernel: HotKernel, compiled: CompiledKernel) -> Defect | None:
    threads = compiled.threads
    sizes = [each.elements for each in compiled.accesses or ()]
    if not sizes or compiled.dots:
        return None
    largest = max(compiled.accesses or (), key=lambda each: each.elements)
    if largest.elements * 2 > threads:
        return (
            _of_masked_lanes(kernel, compiled)
            or _of_many_warps(kernel, compiled, largest)
            or _of_short_turns(kernel, compiled)
        )
    return Defect(
        f"has {threads} threads for tiles of {largest.elements} elements: "
        f"{threads - largest.elements} of them repeat the work of others",
        _CHANGE,
        _SAVED * (1 - largest.elements / threads),
        Confidence.HEURISTIC,
        [largest.place],
        (Quantity("threads", threads), Quantity("elements of the largest tile", largest.elements)),
        is_of_launch=True,
    )


def _of_masked_lanes(kernel: HotKernel, compiled: CompiledKernel) -> Defect | None:
    accesses = compiled.accesses or ()
    total, needed = (sum(getattr(each, name) for each in accesses) for name in ("elements", "needed"))
    worst = max(accesses, key=lambda each: each.elements - each.needed)
    if needed * _MUCH_LARGER > total:
        return None
    is_short = max(each.needed for each in accesses) <= _SHORT_ROW
    return Defect(
        f"has tiles of {worst.elements:,} elements of which a mask drops most: {worst.needed:,} would do",
        _CHANGE_OF_ROWS if is_short else _CHANGE_OF_LANES,
        max(
            _SAVED_OF_LANES * (1 - needed / total),
            min(_saved_by_bytes(kernel, compiled, 0.0), _MOST_OF_ROWS) if is_short else 0.0,
        ),
        Confidence.HEURISTIC,
        [worst.place],
        (Quantity("elements of the tile", worst.elements), Quantity("elements that would do", worst.needed)),
        is_of_launch=True,
    )


def _of_many_warps(kernel: HotKernel, compiled: CompiledKernel, largest: Access) -> Defect | None:
    warps = compiled.num_warps or 0
    if warps <= _USUAL_WARPS or not largest.is_contiguous:
        return None
    width = largest.size_bytes // compiled.threads
    if width not in _SAVED_NARROW:
        return None
    return Defect(
        f"has {warps} warps for tiles of {largest.elements} elements: a thread accesses {width} B at once, not 16",
        _CHANGE,
        _saved_by_bytes(kernel, compiled, _SAVED_NARROW[width]),
        Confidence.HEURISTIC,
        [largest.place],
        (Quantity("warps", warps), Quantity("memory of a thread", width, "B")),
        is_of_launch=True,
    )


def _of_short_turns(kernel: HotKernel, compiled: CompiledKernel) -> Defect | None:
    """Loops over a row that load so little in a turn that waits for memory, not its bandwidth, bound the kernel."""
    loads = [each for each in compiled.accesses or () if each.in_loop and not each.is_store]
    loaded, steps = sum(each.size_bytes for each in loads), {each.step for each in compiled.loops or ()}
    goes_on = all(each.strides == ("1",) and each.elements in steps for each in loads)
    does_more = compiled.slow or compiled.atomics or any(each.in_loop for each in compiled.reductions or ())
    if not loads or not goes_on or does_more or loaded > _SHORT_TURN * compiled.threads:
        return None
    if all(launch.blocks < kernel.num_sms for launch in kernel.launches):
        return None
    saved = _saved_by_bytes(kernel, compiled, 0.0)
    if saved < _LEAST_OF_TURNS:
        return None
    return Defect(
        f"loads {loaded // compiled.threads} B a thread in each turn of a loop, which waits for them",
        _CHANGE_OF_TURNS,
        saved,
        Confidence.HEURISTIC,
        [loads[0].place],
        (Quantity("memory of a thread in a turn", loaded // compiled.threads, "B"),),
        is_of_launch=True,
    )


def _saved_by_bytes(kernel: HotKernel, compiled: CompiledKernel, otherwise: float) -> float:
    least_ns = moving_ns(kernel, compiled)
    return otherwise if least_ns is None else max(1 - least_ns / kernel.mean_ns, 0.0)


RULE = kernel_rule(
    "idle-threads",
    _judge,
    "Triton kernels whose tiles have fewer elements than half their threads, or hardly more than many warps",
    _CHANGE,
)
